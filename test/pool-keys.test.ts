import assert from "node:assert/strict";
import { test } from "node:test";
import type { Permit } from "../src/model/decision.ts";
import { poolKeysOf } from "../src/pool-keys.ts";
import { ask } from "./decide/build.ts";

const { client, destination } = ask("https://a.example/");
const PERMIT = { client, destination, scheme: "https", mayReachPrivate: false } as unknown as Permit;

test("poolKeysOf shares connections between no two sandboxes, destinations, policies or sets of secrets", () => {
  const keys = [
    poolKeysOf(PERMIT, ".1", 1, ""),
    poolKeysOf(PERMIT, ".2", 1, ""),
    poolKeysOf(PERMIT, ".1", 2, ""),
    poolKeysOf(PERMIT, ".1", 1, "certificate"),
    poolKeysOf({ ...PERMIT, scheme: "http" } as Permit, ".1", 1, ""),
    poolKeysOf({ ...PERMIT, mayReachPrivate: true } as Permit, ".1", 1, ""),
    poolKeysOf({ ...PERMIT, client: { ...client, sandbox: "box" } } as Permit, ".1", 1, ""),
    poolKeysOf({ ...PERMIT, destination: { ...destination, port: 8443 } } as Permit, ".1", 1, ""),
  ];
  assert.equal(new Set(keys.map(({ poolKey }) => poolKey)).size, keys.length);
  // What is learnt of a destination does not depend on the secrets sent there.
  assert.equal(new Set(keys.map(({ freshKey }) => freshKey)).size, keys.length - 1);
});

test("poolKeysOf gives the same strings as long as nothing is different", () => {
  const first = poolKeysOf(PERMIT, ".1", 1, "");
  assert.equal(poolKeysOf({ ...PERMIT }, ".1", 1, ""), first);
  assert.notEqual(poolKeysOf(PERMIT, ".2", 1, ""), first);
  assert.deepEqual(poolKeysOf(PERMIT, ".1", 1, ""), first);
});
