/** One exchange over HTTP/2, as the relay sees it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Field, RequestHead } from "../../src/model/exchange.ts";
import { eventually } from "../support/loopback.ts";
import { linked } from "./h2-harness.ts";
import { hearAnswer } from "./harness.ts";

const HOST = field("host", "a.example");
const GET: RequestHead = { method: "GET", target: "/", minor: 1, fields: [HOST] };
const NONE = { kind: "none" } as const;
const OPEN = { kind: "chunked" } as const;

function field(key: string, value: string): Field {
  return { name: key, key, value };
}

test("Http2Upstream sends a head, a body and trailers, and hears an answer of the same kind", async (context) => {
  const { session, stream } = await linked(context);
  const answer = hearAnswer();
  const upstream = session.take();
  upstream.send(
    { ...GET, method: "POST", sensitive: ["x-secret"], fields: [HOST, field("x-secret", "s")] },
    OPEN,
    answer,
  );
  upstream.write(Buffer.from("body"));
  upstream.end([field("x-t", "1")]);
  const far = await stream();
  let trailers: unknown;
  far.on("trailers", (_headers, _flags, pairs) => {
    trailers = pairs;
  });
  far.additionalHeaders({ ":status": 103 });
  far.respond({ ":status": 200, "content-length": 4 }, { waitForTrailers: true });
  far.on("wantTrailers", () => far.sendTrailers({ "x-u": "2" }));
  far.pipe(far);
  await answer.over();
  assert.deepEqual(answer.interim, [103]);
  assert.deepEqual(
    [answer.status, answer.body, answer.framing],
    [200, "body", { kind: "length", length: 4 }],
  );
  assert.deepEqual(answer.trailers, [field("x-u", "2")]);
  assert.deepEqual(trailers, ["x-t", "1"]);
  await eventually(() => session.open === 0);
});

test("Http2Upstream tells a reset with its code, and whether anything was seen", async (context) => {
  const { session, stream } = await linked(context);
  const before = hearAnswer();
  session.take().send(GET, NONE, before);
  (await stream()).close(11);
  await before.over();
  assert.deepEqual(
    [before.failure?.code, before.failure?.reset, before.untouched],
    ["E_UPSTREAM_PROTOCOL", 11, true],
  );
  const refused = hearAnswer();
  session.take().send(GET, NONE, refused);
  (await stream()).close(7);
  await refused.over();
  assert.equal(refused.untouched, "unprocessed");
});

test("Http2Upstream says nothing of a code where the connection went", async (context) => {
  const { session, stream, far } = await linked(context);
  const answer = hearAnswer();
  session.take().send(GET, NONE, answer);
  (await stream()).respond({ ":status": 200 });
  await eventually(() => answer.status === 200);
  far.destroy();
  await answer.over();
  assert.deepEqual([answer.failure?.reset, answer.untouched], [undefined, false]);
});

test("Http2Upstream did not send what it could not", async (context) => {
  const { session } = await linked(context);
  const upstream = session.take();
  session.destroy();
  const answer = hearAnswer();
  upstream.send(GET, NONE, answer);
  await answer.over();
  assert.equal(answer.untouched, "unprocessed");
  upstream.abort();
});

test("Http2Upstream gives up a silent upstream, at once where nobody waits any more", async (context) => {
  const { session, stream, deadlines } = await linked(context, { limits: { response_timeout: 100 } });
  const silent = hearAnswer();
  session.take().send(GET, NONE, silent);
  const first = await stream();
  deadlines.pass(200);
  await silent.over();
  assert.equal(silent.failure?.code, "E_TIMEOUT");
  await eventually(() => first.rstCode === 8);
  const left = hearAnswer();
  const upstream = session.take();
  upstream.send(GET, NONE, left);
  const second = await stream();
  upstream.abort(5);
  await eventually(() => second.rstCode === 5);
  assert.equal(left.failure, undefined);
});

test("Http2Upstream stops a request whose answer is complete", async (context) => {
  const { session, stream } = await linked(context);
  const answer = hearAnswer();
  const upstream = session.take();
  upstream.send({ ...GET, method: "POST" }, OPEN, answer);
  const far = await stream();
  far.respond({ ":status": 413 }, { endStream: true });
  await answer.over();
  assert.equal(answer.status, 413);
  await eventually(() => far.closed);
  assert.equal(upstream.write(Buffer.from("x")), true);
  upstream.end([]);
  upstream.resume();
});

test("Http2Upstream leaves a WebSocket's stream open until both sides ended", async (context) => {
  const { session, stream } = await linked(context, {
    server: { settings: { enableConnectProtocol: true } },
  });
  const answer = hearAnswer();
  const upstream = session.take();
  upstream.send({ ...GET, fields: [HOST, field("upgrade", "websocket")] }, OPEN, answer);
  const far = await stream();
  far.respond({ ":status": 200 });
  far.end("last");
  let heard = "";
  far.on("data", (bytes: Buffer) => {
    heard += bytes.toString("latin1");
  });
  await answer.over();
  assert.equal(answer.body, "last");
  upstream.write(Buffer.from("more"));
  upstream.end([]);
  await once(far, "end");
  assert.deepEqual([heard, answer.failure], ["more", undefined]);
  await eventually(() => session.open === 0);
});

test("Http2Upstream resets a WebSocket whose upstream ended, on a connection that is retired in the same turn", async (context) => {
  const { session, stream } = await linked(context, {
    server: { settings: { enableConnectProtocol: true } },
  });
  const answer = hearAnswer();
  const upstream = session.take();
  upstream.send({ ...GET, fields: [HOST, field("upgrade", "websocket")] }, OPEN, answer);
  const far = await stream();
  far.resume();
  far.respond({ ":status": 200 });
  far.end();
  await answer.over();
  const closed = once(far, "close");
  upstream.abort();
  session.retire();
  await closed;
  assert.equal(far.rstCode, 8);
});

test("Http2Upstream tells of a WebSocket's reset with its own code, after its end too", async (context) => {
  for (const ends of [false, true]) {
    const { session, stream } = await linked(context, {
      server: { settings: { enableConnectProtocol: true } },
    });
    const answer = hearAnswer();
    session.take().send({ ...GET, fields: [HOST, field("upgrade", "websocket")] }, OPEN, answer);
    const far = await stream();
    far.resume();
    far.respond({ ":status": 200 }, { waitForTrailers: true });
    far.on("wantTrailers", () => {
      if (!far.closed) far.sendTrailers({});
    });
    await eventually(() => answer.status === 200);
    if (ends) {
      far.end();
      await answer.over();
    }
    far.close(0);
    await eventually(() => answer.failure !== undefined);
    assert.equal(answer.failure?.reset, 0);
    await eventually(() => session.open === 0);
  }
});

test("Http2Upstream takes no answer that it cannot read, and no endless interim ones", async (context) => {
  const { session, stream } = await linked(context, { limits: { interim_responses: 1, trailer_bytes: 10 } });
  const many = hearAnswer();
  session.take().send(GET, NONE, many);
  const far = await stream();
  for (const status of [102, 103]) far.additionalHeaders({ ":status": status });
  await many.over();
  assert.equal(many.failure?.code, "E_UPSTREAM_PROTOCOL");
  const long = hearAnswer();
  session.take().send(GET, NONE, long);
  const next = await stream();
  next.respond({ ":status": 200 }, { waitForTrailers: true });
  next.on("wantTrailers", () => next.sendTrailers({ x: "v".repeat(100) }));
  next.end();
  await long.over();
  assert.equal(long.failure?.code, "E_UPSTREAM_PROTOCOL");
});

test("Http2Upstream never leaves HTTP/2", async (context) => {
  const { session } = await linked(context);
  const upstream = session.take();
  assert.equal(upstream.websockets, false);
  assert.throws(() => upstream.takeOver(), { code: "E_INTERNAL" });
  upstream.pause();
  upstream.destroy();
});
