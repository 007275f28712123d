import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cap, ConnectionCaps } from "../../src/accept/connection-caps.ts";

const ADDRESS = "10.0.0.1";

test("ConnectionCaps opens so many connections, and another once one is released", () => {
  const caps = new ConnectionCaps({
    connections: 2,
    connections_per_sandbox: 9,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const first = opened(caps);
  opened(caps);
  assert.equal(caps.open(ADDRESS), undefined);
  first.release();
  opened(caps);
  assert.equal(caps.open(ADDRESS), undefined);
});

test("claim counts each sandbox apart, and those without one together", () => {
  const caps = new ConnectionCaps({
    connections: 99,
    connections_per_sandbox: 1,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
  assert.equal(opened(caps).claim("b"), true);
  assert.equal(opened(caps).claim(undefined), true);
  assert.equal(opened(caps).claim(undefined), false);
});

test("claim counts a connection once, however many requests it carries", () => {
  const caps = new ConnectionCaps({
    connections: 99,
    connections_per_sandbox: 2,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const cap = opened(caps);
  for (let request = 0; request < 5; request += 1) assert.equal(cap.claim("a"), true);
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
});

test("claim moves a connection whose requests come to be another sandbox's", () => {
  const caps = new ConnectionCaps({
    connections: 99,
    connections_per_sandbox: 1,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const cap = opened(caps);
  cap.claim("a");
  assert.equal(cap.claim("b"), true);
  assert.equal(opened(caps).claim("a"), true);
  // Refused, it stays what it was.
  assert.equal(cap.claim("a"), false);
  assert.equal(opened(caps).claim("b"), false);
});

test("release gives back what was claimed, and a connection that claimed nothing", () => {
  const caps = new ConnectionCaps({
    connections: 1,
    connections_per_sandbox: 1,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const cap = opened(caps);
  cap.claim("a");
  cap.release();
  opened(caps).release();
  assert.equal(opened(caps).claim("a"), true);
});

test("ConnectionCaps lets one address have so many connections that are nobody's yet, and others theirs", () => {
  const caps = new ConnectionCaps({
    connections: 16,
    connections_per_sandbox: 2,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const first = opened(caps);
  opened(caps);
  assert.equal(caps.open(ADDRESS), undefined);
  assert.ok(caps.open("10.0.0.2") !== undefined);
  // Once it is a sandbox's, it counts there alone.
  assert.equal(first.claim("a"), true);
  opened(caps).release();
  first.release();
  opened(caps);
  assert.equal(caps.open(ADDRESS), undefined);
});

test("ConnectionCaps goes by the limits as they are now", () => {
  const limits = {
    connections: 1,
    connections_per_sandbox: 1,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  };
  const caps = new ConnectionCaps(limits);
  opened(caps).claim("a");
  assert.equal(caps.open(ADDRESS), undefined);
  limits.connections = 3;
  limits.connections_per_sandbox = 2;
  assert.equal(opened(caps).claim("a"), true);
  assert.equal(opened(caps).claim("a"), false);
});

test("stream counts those of all connections of a sandbox together, until they end", () => {
  const caps = new ConnectionCaps({
    connections: 99,
    connections_per_sandbox: 9,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 9,
    decoding_bytes_per_sandbox: 9,
  });
  const [one, other, another] = [opened(caps), opened(caps), opened(caps)];
  for (const cap of [one, other]) cap.claim("a");
  another.claim("b");
  const leave = one.stream();
  assert.ok(leave !== undefined);
  assert.ok(other.stream() !== undefined);
  assert.equal(other.stream(), undefined);
  assert.ok(another.stream() !== undefined, "another sandbox has its own");
  leave();
  assert.ok(other.stream() !== undefined);
});

function opened(caps: ConnectionCaps): Cap {
  const cap = caps.open(ADDRESS);
  assert.ok(cap !== undefined);
  return cap;
}

test("room counts what the exchanges of a sandbox keep, and gives it back", () => {
  const caps = new ConnectionCaps({
    connections: 99,
    connections_per_sandbox: 9,
    h2_streams_per_sandbox: 2,
    signed_bytes_per_sandbox: 10,
    decoding_bytes_per_sandbox: 1,
  });
  const [cap, same, other] = [opened(caps), opened(caps), opened(caps)];
  cap.claim("a");
  same.claim("a");
  other.claim("b");
  const first = cap.room("signed_bytes_per_sandbox");
  const second = same.room("signed_bytes_per_sandbox");
  assert.deepEqual([first.take(4), first.take(3), second.take(3), second.take(1)], [true, true, true, false]);
  assert.equal(other.room("signed_bytes_per_sandbox").take(10), true);
  assert.deepEqual(
    [1, 1].map((bytes) => cap.room("decoding_bytes_per_sandbox").take(bytes)),
    [true, false],
  );
  first.release();
  first.release();
  assert.deepEqual([second.take(8), second.take(7)], [false, true]);
});
