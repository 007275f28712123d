import assert from "node:assert/strict";
import { test } from "node:test";
import { isAtFloor, RUNTIME_FLOOR } from "../../src/base/runtime-floor.ts";

test("isAtFloor takes each release of the floor and what came after it in its line", () => {
  for (const version of [...RUNTIME_FLOOR, "22.23.6", "22.24.0", "24.22.4", "24.100.0", "26.14.0"]) {
    assert.equal(isAtFloor(version), true, version);
  }
});

test("isAtFloor takes no older release, be its minor or its patch the lower", () => {
  for (const version of [
    "18.20.0",
    "20.99.99",
    "22.23.4",
    "22.9.9",
    "24.22.2",
    "24.3.9",
    "26.13.0",
    "26.9.0",
  ]) {
    assert.equal(isAtFloor(version), false, version);
  }
});

test("isAtFloor takes no odd line between, and every line after the last", () => {
  assert.equal(isAtFloor("23.99.0"), false);
  assert.equal(isAtFloor("25.99.0"), false);
  assert.equal(isAtFloor("27.0.0"), true);
  assert.equal(isAtFloor("30.1.2"), true);
});

test("isAtFloor takes nothing that is no version", () => {
  for (const version of ["", "x", "v24.22.3", "24"]) assert.equal(isAtFloor(version), false, version);
});

test("isAtFloor takes the Node.js that runs this", () => {
  assert.equal(isAtFloor(process.versions.node), true);
});
