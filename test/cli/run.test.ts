/** `run` as a command: usage, and one jail from end to end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sallyport } from "./program.ts";

test("run: without a command, or with a config that is none, it says so with exit code 2", async () => {
  assert.match((await sallyport(["run"])).stderr, /Name a command after --/);
  const none = await sallyport(["run", "--config", "/no/such.yaml", "--", "true"]);
  assert.deepEqual([none.code, none.stdout], [2, ""]);
  assert.match(none.stderr, /no\/such\.yaml:1:1: There is no such file/);
});
