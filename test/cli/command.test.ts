import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT, stringOf, UsageError } from "../../src/cli/command.ts";

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
