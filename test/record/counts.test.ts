import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { counting, createCells, setting } from "../../src/record/counts.ts";

const IDS = ["api"];
const configured = { rules: () => IDS, sandboxes: () => IDS };
const RECORD = {
  listener: "explicit",
  protocol: "http/1.1",
  verdict: "allow",
  reason: "rule-allows",
  injected: [],
  bytesOut: 0,
  bytesIn: 0,
  durationMs: 1,
} as unknown as ExchangeRecord;

test("counting leaves rule and sandbox alone where the exchange has none", () => {
  const cells = createCells(configured);
  counting(cells).exchange(RECORD);
  assert.deepEqual(cells.rules.entries(), [["api", { allow: 0, deny: 0, injected: 0, scrubbed: 0 }]]);
  assert.deepEqual(cells.sandboxes.entries(), [["api", { allow: 0, deny: 0, injected: 0, scrubbed: 0 }]]);
});

test("counting takes an overhead only from an exchange whose request left", () => {
  const cells = createCells(configured);
  counting(cells).exchange(RECORD);
  assert.equal(cells.overhead.count, 0);
  counting(cells).exchange({ ...RECORD, overheadMs: 0.3 });
  assert.equal(cells.overhead.count, 1);
});

test("counting holds a time-out against the upstream only where it was the upstream's", () => {
  const cells = createCells(configured);
  const { exchange } = counting(cells);
  // A slow upload: decided, sent in part, and given up.
  exchange({ ...RECORD, failure: "E_TIMEOUT", fault: "client" });
  assert.equal(cells.failures["E_TIMEOUT"], 0);
  exchange({ ...RECORD, failure: "E_TIMEOUT", fault: "upstream" });
  exchange({ ...RECORD, failure: "E_INTERNAL", fault: "gate" });
  assert.equal(cells.failures["E_TIMEOUT"], 1);
  assert.equal(cells.failures["E_INTERNAL"], undefined);
});

test("setting keeps the time of the last good load through a bad one", () => {
  const cells = createCells(configured);
  const gauges = setting(cells);
  gauges.configReload("success", 100);
  gauges.configReload("failure", 200);
  assert.equal(cells.lastSuccess, 100);
  assert.deepEqual(cells.reloads, { success: 1, failure: 1 });
});

test("setting shows whether the policy is enforced, either way", () => {
  const cells = createCells(configured);
  const gauges = setting(cells);
  gauges.evaluateOnly(true);
  assert.equal(cells.evaluateOnly, 1);
  gauges.evaluateOnly(false);
  assert.equal(cells.evaluateOnly, 0);
});
