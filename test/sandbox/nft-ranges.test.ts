import assert from "node:assert/strict";
import { test } from "node:test";
import { rangesOf } from "../../src/sandbox/nft-ranges.ts";
import { configOf, TEXT } from "./nft-gateway.ts";

test("rangesOf gives each address of one family once: no range within another, and none twice", () => {
  const [first] = configOf(TEXT).config.policy.sandboxes;
  assert.ok(first !== undefined);
  assert.deepEqual(rangesOf(first, 4), ["10.80.0.0/30"]);
  assert.deepEqual(rangesOf(first, 6), ["fd80::/64"]);
});
