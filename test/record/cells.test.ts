import assert from "node:assert/strict";
import { test } from "node:test";
import { createBuckets, createTallies, LABEL_VALUES } from "../../src/record/cells.ts";

test("createTallies counts by configured id and keeps the rest under other", () => {
  const ids = ["a", "b"];
  const tallies = createTallies(() => ids);
  tallies.of("a").allow += 2;
  tallies.of("telemetry.attacker.example").deny += 1;
  assert.deepEqual(tallies.entries(), [
    ["a", { allow: 2, deny: 0, injected: 0, scrubbed: 0 }],
    ["b", { allow: 0, deny: 0, injected: 0, scrubbed: 0 }],
    ["other", { allow: 0, deny: 1, injected: 0, scrubbed: 0 }],
  ]);
});

test("createTallies gives at most a thousand ids a label of their own", () => {
  const ids = Array.from({ length: 5_000 }, (_, at) => `rule-${at}`);
  const tallies = createTallies(() => ids);
  for (const id of ids) {
    tallies.of(id).allow += 1;
  }
  const entries = tallies.entries();
  assert.equal(entries.length, LABEL_VALUES + 1);
  assert.deepEqual(entries.at(-1), ["other", { allow: 4_000, deny: 0, injected: 0, scrubbed: 0 }]);
});

test("createTallies stays bounded whatever strings it is asked for", () => {
  const none: string[] = [];
  const tallies = createTallies(() => none);
  for (let at = 0; at < 100_000; at += 1) {
    tallies.of(`host-${at}.example`).deny += 1;
  }
  assert.deepEqual(tallies.entries(), [["other", { allow: 0, deny: 100_000, injected: 0, scrubbed: 0 }]]);
});

test("createTallies follows a reload: ids that stay keep their counts, ids that leave give way", () => {
  let ids = ["stays", "leaves"];
  const tallies = createTallies(() => ids);
  tallies.of("stays").allow += 3;
  tallies.of("leaves").allow += 1;
  ids = ["comes", "stays"];
  tallies.of("comes").allow += 5;
  tallies.of("leaves").allow += 1;
  assert.deepEqual(tallies.entries(), [
    ["comes", { allow: 5, deny: 0, injected: 0, scrubbed: 0 }],
    ["stays", { allow: 3, deny: 0, injected: 0, scrubbed: 0 }],
    ["other", { allow: 1, deny: 0, injected: 0, scrubbed: 0 }],
  ]);
});

test("createTallies counts a repeated id once among its labels", () => {
  const ids = ["*.example.com", "*.example.com"];
  assert.equal(createTallies(() => ids).entries().length, 1);
});

test("createBuckets counts each value in every bucket that it fits, bounds included", () => {
  const buckets = createBuckets([0.1, 1]);
  for (const seconds of [0, 0.1, 0.2, 1, 7]) {
    buckets.observe(seconds);
  }
  assert.equal(buckets.count, 5);
  assert.deepEqual(buckets.samples("x", { protocol: "h2" }), [
    { metricName: "x_bucket", labels: { protocol: "h2", le: 0.1 }, value: 2 },
    { metricName: "x_bucket", labels: { protocol: "h2", le: 1 }, value: 4 },
    { metricName: "x_bucket", labels: { protocol: "h2", le: "+Inf" }, value: 5 },
    { metricName: "x_sum", labels: { protocol: "h2" }, value: 8.3 },
    { metricName: "x_count", labels: { protocol: "h2" }, value: 5 },
  ]);
});

test("createBuckets passes over what is no duration", () => {
  const buckets = createBuckets([1]);
  for (const wrong of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
    buckets.observe(wrong);
  }
  assert.equal(buckets.count, 0);
});
