/** A client's HTTP/2 connection: streams become arrivals; what is malformed, idle or too much is seen to. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { eventually, settle } from "../support/loopback.ts";
import { serveH2 } from "./h2-harness.ts";

test("Http2Connection hands each stream over as an arrival, with its names and its marks", async (context) => {
  const served = await serveH2(context);
  served.ask(["host", "a.example:8443", "authorization", "x"]);
  const { request, claims, inbound, door } = await served.arrival(0);
  assert.equal(request.method, "GET");
  assert.equal(claims.authority?.port, 443);
  assert.equal(claims.host?.port, 8443);
  assert.deepEqual(inbound.head.sensitive, ["authorization"]);
  assert.equal(inbound.protocol, "h2");
  assert.equal(door.scheme, "https");
  served.ask([":method", "OPTIONS", ":path", "*"]);
  assert.equal((await served.arrival(1)).request.form, "asterisk");
});

test("Http2Connection takes a CONNECT for what it is, and a WebSocket for a GET", async (context) => {
  const served = await serveH2(context, { websockets: true });
  await once(served.client, "remoteSettings");
  served.client
    .request([":method", "CONNECT", ":authority", "b.example:1"], { endStream: false })
    .on("error", () => undefined);
  const connect = await served.arrival(0);
  assert.deepEqual(
    [connect.request.method, connect.request.form, connect.claims.authority],
    ["CONNECT", "authority", undefined],
  );
  served.ask([":method", "CONNECT", ":protocol", "websocket"], false);
  const websocket = await served.arrival(1);
  assert.deepEqual([websocket.request.method, websocket.request.upgrade], ["GET", "websocket"]);
});

test("Http2Connection answers what is malformed on its stream, or resets it where nothing is to be said", async (context) => {
  const spoken = await serveH2(context);
  const stream = spoken.ask([":scheme", "http"], false);
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 400);
  stream.resume();
  await once(stream, "close");
  assert.equal(spoken.malformed.length, 1);
  const silent = await serveH2(context, { silent: true });
  const reset = silent.ask([":scheme", "http"]);
  reset.resume();
  await eventually(() => reset.rstCode === 1);
});

test("Http2Connection does not keep what is malformed open for a client that takes no answer", async (context) => {
  const served = await serveH2(context);
  served.client.settings({ initialWindowSize: 0 });
  await once(served.client, "localSettings");
  const stream = served.ask([":scheme", "http"], false);
  await once(stream, "response");
  served.deadlines.pass(served.limits.progress_timeout - 1);
  await settle();
  assert.equal(stream.closed, false);
  served.deadlines.pass(2);
  await eventually(() => stream.closed);
});

test("Http2Connection sends a client away that says nothing, or nothing more", async (context) => {
  const mute = await serveH2(context, { limits: { head_timeout: 100, idle_timeout: 1_000 } });
  mute.deadlines.pass(200);
  await eventually(() => mute.closed === 1);
  const idle = await serveH2(context, { limits: { idle_timeout: 1_000 } });
  const stream = idle.ask();
  const { inbound } = await idle.arrival(0);
  idle.deadlines.pass(2_000);
  inbound.respond({ status: 200, phrase: "", minor: 1, fields: [] }, { kind: "none" });
  inbound.end([]);
  stream.resume();
  await once(stream, "close");
  await eventually(() => Number.isFinite(idle.connection.deadline));
  const goaway = once(idle.client, "goaway");
  idle.deadlines.pass(2_000);
  assert.equal((await goaway)[0], 0);
  let told = 0;
  idle.connection.whenClosed(() => {
    told += 1;
  });
  await eventually(() => idle.closed === 1);
  idle.connection.whenClosed(() => {
    told += 1;
  });
  assert.equal(told, 2);
});

test("Http2Connection that drains takes no more streams and ends with the last one", async (context) => {
  const served = await serveH2(context);
  const stream = served.ask();
  const { inbound } = await served.arrival(0);
  const goaway = once(served.client, "goaway");
  served.draining = true;
  served.connection.drain();
  assert.equal((await goaway)[0], 0);
  inbound.respond({ status: 200, phrase: "", minor: 1, fields: [] }, { kind: "none" });
  inbound.end([]);
  stream.resume();
  await eventually(() => served.closed === 1);
});

test("Http2Connection that is cut is reset, and its streams are lost", async (context) => {
  const served = await serveH2(context);
  served.ask();
  const { inbound } = await served.arrival(0);
  const lost = new Promise<void>((resolve) => inbound.whenLost(resolve));
  served.connection.cut();
  await lost;
  await eventually(() => served.closed === 1);
});

test("Http2Connection tells a client that breaks off too much to calm down", async (context) => {
  const served = await serveH2(context, { limits: { h2_resets_per_minute: 3 } });
  const goaway = once(served.client, "goaway");
  for (let count = 0; count < 4; count += 1) {
    const stream = served.ask();
    await served.arrival(count);
    stream.close(8);
    await once(stream, "close");
  }
  assert.equal((await goaway)[0], 11);
  await eventually(() => served.closed === 1);
});

test("Http2Connection lets control frames pass that belong to moving bodies, and no flood", async (context) => {
  const served = await serveH2(context, { limits: { h2_control_frames_per_minute: 3 } });
  await once(served.client, "remoteSettings");
  for (let count = 0; count < 10; count += 1) {
    served.connection.moved();
    await new Promise<void>((resolve) => served.client.ping(() => resolve()));
  }
  const goaway = once(served.client, "goaway");
  for (let count = 0; count < 5; count += 1) served.client.ping(() => undefined);
  assert.equal((await goaway)[0], 11);
});
