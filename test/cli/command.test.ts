import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT, stringOf, UsageError, unknownSandbox } from "../../src/cli/command.ts";

test("stringOf gives what was written after an option, and undefined for a switch or nothing", () => {
  const values = { config: "a.yaml", json: true, empty: "" };
  assert.equal(stringOf(values, "config"), "a.yaml");
  assert.equal(stringOf(values, "empty"), "");
  assert.equal(stringOf(values, "json"), undefined);
  assert.equal(stringOf(values, "none"), undefined);
});

test("UsageError is an Error with a name of its own, and the exit codes are the documented ones", () => {
  assert.equal(new UsageError("Give one file").name, "UsageError");
  assert.ok(new UsageError("Give one file") instanceof Error);
  assert.deepEqual(EXIT, { fine: 0, broke: 1, usage: 2, denied: 3 });
});

test("unknownSandbox names those that there are, eight at most", () => {
  const ids = (count: number): { readonly id: string }[] =>
    Array.from({ length: count }, (_, n) => ({ id: `s${n}` }));
  assert.equal(unknownSandbox("x", []).message, 'The config names no sandbox "x"; it names none');
  assert.match(unknownSandbox("x", ids(8)).message, /; it names s0, s1, s2, s3, s4, s5, s6, s7$/);
  assert.match(unknownSandbox("x", ids(9)).message, /, s7, …$/);
});
