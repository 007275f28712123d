/** An upstream connection in HTTP/2: opened, filled, idle, told to go. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { TLSSocket } from "node:tls";
import { openSession } from "../../src/forward/h2-session.ts";
import { Failure } from "../../src/model/failure.ts";
import { around, createPair, eventually } from "../support/loopback.ts";
import { linked } from "./h2-harness.ts";

const HOME = {
  idles: () => undefined,
  works: () => undefined,
  leaving: () => undefined,
  closed: () => undefined,
};

test("openSession waits for the upstream's SETTINGS, and knows by them whether it takes WebSockets", async (context) => {
  const { session } = await linked(context, { server: { settings: { enableConnectProtocol: true } } });
  assert.equal(session.websockets, true);
  assert.equal((await linked(context)).session.websockets, false);
});

test("openSession fails where something else than HTTP/2 comes, or nothing more", async (context) => {
  for (const spoil of ["answer", "end"] as const) {
    const { near, far } = await createPair(context);
    near.on("error", () => undefined);
    const surroundings = { ...around(), home: HOME, peer: undefined };
    const opening = openSession(
      near as unknown as TLSSocket,
      "key",
      surroundings,
      new AbortController().signal,
    );
    if (spoil === "answer") far.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    else far.end();
    await assert.rejects(opening, { code: "E_UPSTREAM_PROTOCOL" });
    assert.ok(near.destroyed);
  }
});

test("openSession is given up with the reason that the signal has", async (context) => {
  const { near } = await createPair(context);
  near.on("error", () => undefined);
  const controller = new AbortController();
  const surroundings = { ...around(), home: HOME, peer: undefined };
  const opening = openSession(near as unknown as TLSSocket, "key", surroundings, controller.signal);
  controller.abort(new Failure("E_TIMEOUT", "upstream", "late"));
  await assert.rejects(opening, { code: "E_TIMEOUT" });
});

test("Http2UpstreamSession is full with as many streams as the upstream takes", async (context) => {
  const { session } = await linked(context, { server: { settings: { maxConcurrentStreams: 2 } } });
  assert.deepEqual([session.unused, session.full, session.open], [true, false, 0]);
  const streams = [session.take(), session.take()];
  assert.deepEqual([session.unused, session.full, session.open], [false, true, 2]);
  assert.deepEqual(
    streams.map(({ reused }) => reused),
    [false, true],
  );
  streams[0]?.destroy();
  streams[0]?.destroy();
  assert.deepEqual([session.full, session.open], [false, 1]);
});

test("Http2UpstreamSession is closed when it idled too long, and not while a stream is open", async (context) => {
  const { session, deadlines } = await linked(context, { limits: { pool_idle_timeout: 100 } });
  const stream = session.take();
  deadlines.pass(200);
  assert.ok(session.usable);
  stream.destroy();
  deadlines.pass(200);
  assert.ok(!session.usable);
  assert.ok(session.lost);
});

test("Http2UpstreamSession takes no more streams after GOAWAY, and knows which were not looked at", async (context) => {
  const { session, far, pool } = await linked(context);
  session.take();
  assert.equal(session.refused(undefined), false);
  far.goaway(0, 1);
  await eventually(() => !session.usable);
  assert.deepEqual([session.refused(1), session.refused(3), session.refused(undefined)], [false, true, true]);
  assert.equal(pool.take("key", "key"), undefined);
});

test("Http2UpstreamSession is gone with its connection", async (context) => {
  const { session, far } = await linked(context);
  far.destroy();
  await eventually(() => !session.usable);
  session.expired();
});

test("Http2UpstreamSession retires at once where it idles, else when its last stream ends", async (context) => {
  const idle = await linked(context);
  idle.session.retire();
  assert.ok(!idle.session.usable);
  const busy = await linked(context);
  const stream = busy.session.take();
  const closed = once(busy.far, "close");
  busy.session.retire();
  assert.ok(!busy.session.usable);
  stream.destroy();
  await closed;
});
