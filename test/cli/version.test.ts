import assert from "node:assert/strict";
import { test } from "node:test";
import { VERSION } from "../../src/cli/version.ts";
import { read } from "../checks/repository.ts";

test("VERSION is that of package.json", () => {
  assert.equal(VERSION, (JSON.parse(read("package.json")) as { version: string }).version);
  assert.match(VERSION, /^\d+\.\d+\.\d+/);
});
