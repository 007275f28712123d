/** The runtime's floor is one: the program checks it, the bootstrap installs by it, the docs state it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAtFloor, RUNTIME_FLOOR } from "../../src/base/runtime-floor.ts";
import { read } from "./repository.ts";

test("bootstrap.mjs: its floor is the program's", () => {
  const floor = /const FLOOR = \{(.*)\};/.exec(read("bin/bootstrap.mjs"))?.[1] ?? "";
  const versions = [...floor.matchAll(/(\d+): \[(\d+), (\d+)\]/g)].map((match) => match.slice(1).join("."));
  assert.deepEqual(versions, RUNTIME_FLOOR);
});

test("bootstrap.mjs: the runtime that it installs is at the floor, and the image and the docs have the same", () => {
  const pinned = /const PINNED = "([\d.]+)";/.exec(read("bin/bootstrap.mjs"))?.[1] ?? "";
  assert.ok(isAtFloor(pinned));
  assert.ok(read("docs/DEPENDENCIES.md").includes(pinned));
});

test("DEPENDENCIES.md: it states the floor", () => {
  for (const version of RUNTIME_FLOOR) assert.ok(read("docs/DEPENDENCIES.md").includes(version), version);
});
