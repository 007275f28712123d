/** One request over HTTP/2 and the answer to it, as the relay sees it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { watchEnd } from "../../src/base/genuine-end.ts";
import type { FieldLines } from "../../src/model/exchange.ts";
import type { Failure } from "../../src/model/failure.ts";
import type { InboundEvents } from "../../src/model/inbound.ts";
import { eventually } from "../support/loopback.ts";
import { type ServeH2Options, serveH2 } from "./h2-harness.ts";

const OPEN = { kind: "chunked" } as const;

function head(status: number, ...fields: FieldLines) {
  return { status, phrase: "", minor: 1, fields } as const;
}

function field(key: string, value: string) {
  return { name: key, key, value };
}

async function asked(
  context: TestContext,
  pairs: readonly string[],
  whole: boolean,
  options: ServeH2Options = {},
) {
  const served = await serveH2(context, options);
  if (options.websockets === true) await once(served.client, "remoteSettings");
  const stream = served.ask(pairs, whole);
  const { inbound } = await served.arrival(0);
  return { ...served, stream, inbound };
}

interface Heard extends InboundEvents {
  body: string;
  trailers: FieldLines | undefined;
  drains: number;
  failure: Failure | undefined;
}

function hear(): Heard {
  const heard: Heard = {
    body: "",
    trailers: undefined,
    drains: 0,
    failure: undefined as Failure | undefined,
    data: (bytes) => {
      heard.body += bytes.toString("latin1");
    },
    end: (trailers) => {
      heard.trailers = trailers;
    },
    drained: () => {
      heard.drains += 1;
    },
    gone: (failure) => {
      heard.failure = failure;
    },
  };
  return heard;
}

test("Http2Inbound gives a body and its trailers, and takes an answer of the same kind", async (context) => {
  const served = await serveH2(context);
  const stream = served.client.request(
    [":method", "POST", ":scheme", "https", ":authority", "a.example", ":path", "/"],
    { waitForTrailers: true },
  );
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-t": "1" }));
  const { inbound } = await served.arrival(0);
  const heard = hear();
  inbound.start(heard);
  stream.end("body");
  await eventually(() => heard.trailers !== undefined);
  assert.equal(heard.body, "body");
  assert.deepEqual(heard.trailers, [field("x-t", "1")]);
  const informed = once(stream, "headers");
  inbound.inform(head(103, field("link", "</a>"), field("link", "</b>"), field("link", "</c>")));
  assert.deepEqual((await informed)[2], [":status", "103", "link", "</a>", "link", "</b>", "link", "</c>"]);
  const trailers = once(stream, "trailers");
  inbound.respond(head(200), OPEN);
  inbound.write(Buffer.from("answer"));
  inbound.end([field("x-u", "2")]);
  inbound.inform(head(103));
  stream.resume();
  assert.deepEqual((await trailers)[2], ["x-u", "2"]);
  assert.equal(inbound.responded, 200);
  await once(stream, "close");
  assert.equal(stream.rstCode, 0);
});

test("Http2Inbound gives up the rest of a request once its answer is complete", async (context) => {
  for (const bodiless of [true, false]) {
    const { inbound, stream } = await asked(context, [":method", "POST"], false);
    inbound.closeAfter();
    inbound.respond(head(413), bodiless ? { kind: "none" } : OPEN);
    inbound.end([]);
    stream.resume();
    await once(stream, "close");
    assert.equal(stream.rstCode, 0);
    assert.equal(inbound.write(Buffer.from("x")), true);
  }
});

test("Http2Inbound breaks off with the code that it is given, and INTERNAL_ERROR without", async (context) => {
  for (const code of [undefined, 11]) {
    const { inbound, stream } = await asked(context, [], true);
    inbound.respond(head(200), OPEN);
    inbound.abort(code);
    inbound.abort(5);
    await eventually(() => stream.rstCode === (code ?? 2));
  }
});

test("Http2Inbound tells that the client went, once, with its code", async (context) => {
  const { inbound, stream } = await asked(context, [":method", "POST"], false);
  let lost = 0;
  inbound.whenLost(() => {
    lost += 1;
  });
  stream.close(0);
  await eventually(() => lost === 1);
  const heard = hear();
  inbound.start(heard);
  assert.deepEqual([heard.failure?.status, heard.failure?.reset], [499, 8]);
  inbound.whenLost(() => {
    lost += 1;
  });
  assert.equal(lost, 2);
  inbound.respond(head(200), OPEN);
  assert.equal(inbound.responded, undefined);
  inbound.pause();
  inbound.resume();
});

test("Http2Inbound does not wait for ever: for a body, or for a window", async (context) => {
  const silent = await asked(context, [":method", "POST"], false, { limits: { progress_timeout: 100 } });
  const heard = hear();
  silent.inbound.start(heard);
  silent.inbound.pause();
  silent.deadlines.pass(200);
  assert.equal(codeOf(heard), undefined);
  silent.inbound.resume();
  silent.deadlines.pass(200);
  assert.equal(codeOf(heard), "E_TIMEOUT");
  assert.equal(heard.failure?.reset, 8);
  await eventually(() => silent.stream.rstCode === 8);

  const stalled = await asked(context, [], true, { limits: { progress_timeout: 100 } });
  stalled.inbound.start(hear());
  stalled.inbound.respond(head(200), OPEN);
  while (stalled.inbound.write(Buffer.alloc(65_536)));
  stalled.deadlines.pass(200);
  await eventually(() => stalled.stream.rstCode === 8);
});

test("Http2Inbound tells when a window has opened again", async (context) => {
  const { inbound, stream } = await asked(context, [], true);
  const heard = hear();
  inbound.start(heard);
  inbound.respond(head(200), OPEN);
  while (inbound.write(Buffer.alloc(65_536)));
  stream.resume();
  await eventually(() => heard.drains > 0);
  inbound.end([]);
  await once(stream, "end");
});

test("Http2Inbound waits as long for gRPC and WebSockets as for a tunnel", async (context) => {
  const limits = { progress_timeout: 100, tunnel_idle_timeout: 1_000 };
  const { inbound, deadlines } = await asked(
    context,
    [":method", "POST", "content-type", "application/grpc"],
    false,
    { limits },
  );
  const heard = hear();
  inbound.start(heard);
  deadlines.pass(500);
  assert.equal(codeOf(heard), undefined);
  deadlines.pass(600);
  assert.equal(codeOf(heard), "E_TIMEOUT");
});

const WEBSOCKET = [":method", "CONNECT", ":protocol", "websocket"];
const WEBSOCKETS = { websockets: true, limits: { progress_timeout: 100, tunnel_idle_timeout: 1_000 } };

test("Http2Inbound ends its side of a WebSocket, and hears the client's until that ends too", async (context) => {
  const { inbound, stream } = await asked(context, WEBSOCKET, false, WEBSOCKETS);
  const heard = hear();
  inbound.start(heard);
  inbound.respond(head(200), OPEN);
  inbound.write(Buffer.from("last"));
  stream.resume();
  const ended = once(stream, "end");
  inbound.endSide?.([]);
  inbound.endSide?.([]);
  await ended;
  stream.write("more");
  await eventually(() => heard.body === "more");
  stream.end();
  await once(stream, "close");
  await eventually(() => heard.trailers !== undefined);
  assert.deepEqual([heard.failure, stream.rstCode], [undefined, 0]);
});

test("Http2Inbound resets a WebSocket whose side has ended only when that end has left", async (context) => {
  for (const code of [0, 8]) {
    for (const bodiless of [true, false]) {
      const { inbound, stream } = await asked(context, WEBSOCKET, false, WEBSOCKETS);
      inbound.start(hear());
      inbound.respond(head(200), bodiless ? { kind: "none" } : OPEN);
      let body = 0;
      stream.on("data", (bytes: Buffer) => {
        body += bytes.length;
      });
      const length = bodiless ? 0 : 60_000;
      inbound.write(Buffer.alloc(length));
      const ending = watchEnd(stream, bodiless);
      inbound.endSide?.([]);
      inbound.abort(code);
      await eventually(() => stream.closed);
      assert.deepEqual([body, ending.genuine, stream.rstCode], [length, true, code]);
    }
  }
});

test("Http2Inbound tells of a WebSocket's reset without an error as what it is", async (context) => {
  const { inbound, stream } = await asked(context, WEBSOCKET, false, WEBSOCKETS);
  const heard = hear();
  inbound.start(heard);
  stream.close(0);
  await eventually(() => heard.failure !== undefined);
  assert.deepEqual([heard.failure?.status, heard.failure?.reset], [499, 0]);
});

test("Http2Inbound gives a WebSocket's reader as long as a tunnel's, until both sides ended", async (context) => {
  const { inbound, stream, deadlines } = await asked(context, WEBSOCKET, false, WEBSOCKETS);
  const heard = hear();
  inbound.start(heard);
  inbound.respond(head(200), OPEN);
  while (inbound.write(Buffer.alloc(65_536)));
  deadlines.pass(500);
  assert.equal(heard.failure, undefined);
  inbound.endSide?.([]);
  stream.end();
  await eventually(() => heard.trailers !== undefined);
  deadlines.pass(200);
  await eventually(() => stream.rstCode === 8);
});

test("Http2Inbound resets a request whose trailers cannot be read", async (context) => {
  const served = await serveH2(context, { limits: { trailer_bytes: 10 } });
  const stream = served.client.request(
    [":method", "POST", ":scheme", "https", ":authority", "a.example", ":path", "/"],
    { waitForTrailers: true },
  );
  stream.on("error", () => undefined);
  stream.on("wantTrailers", () => stream.sendTrailers({ x: "v".repeat(100) }));
  const { inbound } = await served.arrival(0);
  const heard = hear();
  inbound.start(heard);
  stream.end("body");
  await eventually(() => heard.failure?.status === 431);
  await eventually(() => stream.rstCode === 1);
});

test("Http2Inbound never leaves HTTP/2", async (context) => {
  const { inbound } = await asked(context, [], true);
  assert.throws(() => inbound.takeOver(head(200)), { code: "E_INTERNAL" });
});

function codeOf({ failure }: Heard): string | undefined {
  return failure?.code;
}
