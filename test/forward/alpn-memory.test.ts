/** What an upstream spoke is remembered for a while. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlpnMemory } from "../../src/forward/alpn-memory.ts";

const H2 = { protocol: "h2", websockets: true } as const;
const H1 = { protocol: "http/1.1", websockets: false } as const;

test("AlpnMemory: what was learnt is recalled until it is too old, and the last word counts", () => {
  let now = 0;
  const memory = new AlpnMemory({ alpn_ttl: 100 }, () => now);
  assert.equal(memory.recall("a"), undefined);
  memory.learn("a", H2);
  assert.equal(memory.recall("a"), H2);
  assert.equal(memory.recall("b"), undefined);
  now = 99;
  memory.learn("b", H2);
  memory.learn("b", H1);
  assert.equal(memory.recall("a"), H2);
  now = 100;
  assert.equal(memory.recall("a"), undefined);
  assert.equal(memory.recall("b"), H1);
});

test("AlpnMemory: it has an end, and forgets what it learnt first", () => {
  const memory = new AlpnMemory({ alpn_ttl: 100 }, () => 0);
  for (let count = 0; count <= 10_000; count += 1) memory.learn(`${count}`, H2);
  assert.equal(memory.recall("0"), undefined);
  assert.equal(memory.recall("1"), H2);
  assert.equal(memory.recall("10000"), H2);
});
