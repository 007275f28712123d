import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cap, ConnectionCaps } from "../../src/accept/connection-caps.ts";

test("ConnectionCaps opens so many connections, and another once one is released", () => {
  const caps = new ConnectionCaps({ connections: 2, connections_per_sandbox: 9 });
  const first = opened(caps);
  opened(caps);
  assert.equal(caps.open(), undefined);
  first.release();
  opened(caps);
  assert.equal(caps.open(), undefined);
});

test("claim counts each sandbox apart, and those without one together", () => {
  const caps = new ConnectionCaps({ connections: 99, connections_per_sandbox: 1 });
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
  assert.equal(opened(caps).claim("b"), true);
  assert.equal(opened(caps).claim(undefined), true);
  assert.equal(opened(caps).claim(undefined), false);
});

test("claim counts a connection once, however many requests it carries", () => {
  const caps = new ConnectionCaps({ connections: 99, connections_per_sandbox: 2 });
  const cap = opened(caps);
  for (let request = 0; request < 5; request += 1) assert.equal(cap.claim("a"), true);
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
});

test("claim moves a connection whose requests come to be another sandbox's", () => {
  const caps = new ConnectionCaps({ connections: 99, connections_per_sandbox: 1 });
  const cap = opened(caps);
  cap.claim("a");
  assert.equal(cap.claim("b"), true);
  assert.equal(opened(caps).claim("a"), true);
  // Refused, it stays what it was.
  assert.equal(cap.claim("a"), false);
  assert.equal(opened(caps).claim("b"), false);
});

test("release gives back what was claimed, and a connection that claimed nothing", () => {
  const caps = new ConnectionCaps({ connections: 1, connections_per_sandbox: 1 });
  const cap = opened(caps);
  cap.claim("a");
  cap.release();
  opened(caps).release();
  assert.equal(opened(caps).claim("a"), true);
});

test("ConnectionCaps goes by the limits as they are now", () => {
  const limits = { connections: 1, connections_per_sandbox: 1 };
  const caps = new ConnectionCaps(limits);
  opened(caps).claim("a");
  assert.equal(caps.open(), undefined);
  limits.connections = 3;
  limits.connections_per_sandbox = 2;
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
});

function opened(caps: ConnectionCaps): Cap {
  const cap = caps.open();
  assert.ok(cap !== undefined);
  return cap;
}
