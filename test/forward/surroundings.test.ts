import assert from "node:assert/strict";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";
import { test } from "node:test";
import { createSurroundings } from "../../src/forward/surroundings.ts";

test("createSurroundings knows this machine's addresses and the gate's endpoints", () => {
  const surroundings = createSurroundings({ endpoints: () => ["10.0.0.53 53"], now: () => 0 }).current();
  assert.ok(surroundings.own.has("127.0.0.1"));
  for (const address of surroundings.own) assert.doesNotMatch(address, /%/);
  assert.deepEqual(surroundings.endpoints, new Set(["10.0.0.53 53"]));
});

test("createSurroundings looks at the interfaces anew, at most once a second", (context) => {
  let addresses = ["192.0.2.1", "fe80::1%sbx0", "::ffff:192.0.2.9", "no address"];
  let looks = 0;
  context.mock.method(os, "networkInterfaces", () => {
    looks += 1;
    return { sbx0: addresses.map((address) => ({ address })), gone: undefined };
  });
  syncBuiltinESMExports();
  context.after(() => {
    context.mock.restoreAll();
    syncBuiltinESMExports();
  });
  let now = 5_000;
  const source = createSurroundings({ endpoints: () => [], now: () => now });
  assert.deepEqual([...source.current().own], ["192.0.2.1", "fe80::1", "192.0.2.9"]);
  addresses = ["198.51.100.1"];
  now += 999;
  assert.equal(source.current().own.has("198.51.100.1"), false);
  assert.equal(looks, 1);
  now += 1;
  assert.deepEqual([...source.current().own], ["198.51.100.1"]);
  assert.equal(looks, 2);
});

test("createSurroundings takes new endpoints at once", () => {
  let endpoints = ["10.0.0.53 53"];
  const source = createSurroundings({ endpoints: () => endpoints, now: () => 0 });
  const before = source.current();
  assert.equal(source.current(), before);
  endpoints = ["10.0.0.54 53"];
  assert.deepEqual(source.current().endpoints, new Set(["10.0.0.54 53"]));
  assert.deepEqual(before.endpoints, new Set(["10.0.0.53 53"]));
});
