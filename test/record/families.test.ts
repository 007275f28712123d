import assert from "node:assert/strict";
import { test } from "node:test";
import { createCells } from "../../src/record/counts.ts";
import { buildInfo, familiesOf } from "../../src/record/families.ts";

const none: string[] = [];
const families = familiesOf(createCells({ rules: () => none, sandboxes: () => none }));

test("familiesOf names each metric once, as Prometheus wants it", () => {
  const names = families.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const { name, type, help } of families) {
    assert.match(name, /^sallyport_[a-z_]+$/);
    assert.equal(name.endsWith("_total"), type === "counter", name);
    assert.equal(name.endsWith("_seconds") || !name.includes("seconds"), true, name);
    assert.notEqual(help, "");
  }
});

test("familiesOf shows at zero what an alert may watch before anything happened", () => {
  const shown = families.flatMap(({ name, samples }) =>
    samples().map(({ labels }) => `${name} ${Object.values(labels).join()}`),
  );
  for (const sample of [
    "sallyport_exchanges_total explicit,http/1.1,deny,no-rule-matched",
    "sallyport_upstream_failures_total E_UPSTREAM_TLS",
    "sallyport_config_reloads_total failure",
    "sallyport_records_dropped_total ",
    "sallyport_secrets_unavailable ",
    "sallyport_leaf_certificates_total refused",
    "sallyport_dns_queries_total AAAA,deny",
  ]) {
    assert.ok(shown.includes(sample), sample);
  }
});

test("familiesOf sums counters and histograms, but for loads of the one config", () => {
  const others = families.filter(({ type, aggregator }) => type !== "gauge" && aggregator !== "sum");
  assert.deepEqual(
    others.map(({ name }) => name),
    ["sallyport_config_reloads_total"],
  );
});

test("buildInfo is always 1 and says what runs", () => {
  assert.deepEqual(buildInfo("1.0.0", "v24").samples(), [
    { labels: { version: "1.0.0", node: "v24" }, value: 1 },
  ]);
});
