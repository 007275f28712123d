import assert from "node:assert/strict";
import { test } from "node:test";
import { deny } from "../../src/model/decision.ts";

test("deny names its reason, and the rule where one is concerned", () => {
  assert.deepEqual(deny("no-name"), { verdict: "deny", reason: "no-name", rule: undefined });
  assert.deepEqual(deny("rule-denies", "a"), { verdict: "deny", reason: "rule-denies", rule: "a" });
});
