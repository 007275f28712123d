import assert from "node:assert/strict";
import { test } from "node:test";
import { baseChain, dropped, entering, setOf } from "../../src/sandbox/nft-syntax.ts";

test("baseChain accepts what no line of it drops", () => {
  assert.deepEqual(baseChain("a", "filter hook input priority 0", entering(["x*"], "drop")), [
    "\tchain a {",
    "\t\ttype filter hook input priority 0",
    "\t\tpolicy accept",
    '\t\tiifname "x*" drop',
    "\t}",
  ]);
});

test("setOf names each element once, and dropped says nothing of none", () => {
  assert.equal(setOf(["a", "b", "a"]), "{ a, b }");
  assert.deepEqual(dropped("ip saddr", []), []);
  assert.deepEqual(dropped("ip saddr", ["a"], " more"), ["ip saddr { a } more drop"]);
});
