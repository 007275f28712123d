import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { duplexPair } from "node:stream";
import { type TestContext, test } from "node:test";
import { relay } from "../../src/forward/relay.ts";
import type { Field, FieldLines, Framing, RequestHead, ResponseHead } from "../../src/model/exchange.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Inbound, InboundEvents, OutboundEvents, Raw, Upstream } from "../../src/model/inbound.ts";
import type { Leg } from "../../src/model/leg.ts";
import { stageOf } from "../support/body-stage.ts";
import { around, listenTo } from "../support/loopback.ts";

const NO_BODY: Framing = { kind: "none" };
const TEN: Framing = { kind: "length", length: 10 };
const GONE = new Failure("E_BAD_REQUEST", "client", "The client went away", { status: 499 });
const BROKEN = new Failure("E_UPSTREAM_PROTOCOL", "upstream", "Closed");

test("relay sends the leg's head and body on, and the answer back, through the leg's hands", async () => {
  const { client, upstream, log, done } = begin({
    framing: TEN,
    response: (head) => ({ ...head, phrase: "Changed" }),
    requestTrailers: () => [field("X-Up")],
    responseTrailers: () => [field("X-Down")],
  });
  client.data(Buffer.from("0123456789"));
  client.end([field("X-From-Client")]);
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("abcdefghij"));
  upstream.end([field("X-From-Upstream")]);
  assert.deepEqual(await done, { kind: "relayed", status: 200, bytesOut: 10, bytesIn: 10 });
  assert.deepEqual(log, [
    "up send POST length",
    "client start",
    "up write 0123456789",
    "up end X-Up",
    "client respond 200 Changed length",
    "client write abcdefghij",
    "client end X-Down",
  ]);
});

test("relay holds each side to what the other takes", () => {
  const { client, upstream, log, parts } = begin({ framing: TEN });
  log.length = 0;
  parts.takes = false;
  client.data(Buffer.from("a"));
  upstream.drained();
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("b"));
  client.drained();
  assert.deepEqual(log, [
    "up write a",
    "client pause",
    "client resume",
    "client respond 200 OK length",
    "client write b",
    "up pause",
    "up resume",
  ]);
});

test("relay puts a body through its stage, holds it to what the stage takes, and ends when the stage does", async () => {
  const { events, made, stage } = stageOf();
  const { client, upstream, log, done } = begin({
    framing: TEN,
    requestBody: stage,
    answer: (head) => ({ head: { ...head, phrase: "Staged" }, framing: { kind: "chunked" }, body: stage }),
  });
  client.data(Buffer.from("0123456789"));
  events[0]?.drained();
  upstream.drained();
  client.end([]);
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("abcdefghij"));
  client.drained();
  events[1]?.drained();
  made[0]?.finish();
  upstream.end([]);
  made[1]?.finish();
  const [pauses, sent] = [["client pause", "client resume"], ["client respond 200 Staged chunked"]];
  assert.deepEqual(log.slice(2, 7), [...pauses, ...sent, "up pause", "up resume"]);
  assert.deepEqual(log.slice(7), ["up write 10", "up end ", "client write 10", "client end "]);
  assert.deepEqual(await done, { kind: "relayed", status: 200, bytesOut: 10, bytesIn: 10 });
  for (const { calls } of made) assert.deepEqual(calls, ["drained", "close"]);
});

test("relay breaks the exchange off where a stage fails, and leaves an upstream that is done alone", async () => {
  const { events, made, stage } = stageOf();
  const { upstream, log, done } = begin({ answer: (head, framing) => ({ head, framing, body: stage }) });
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("abcdefghij"));
  upstream.end([]);
  events[0]?.failed(BROKEN);
  assert.equal((await done).kind, "failed");
  assert.equal(log.includes("up abort"), false);
  const { length } = log;
  made[0]?.finish();
  assert.equal(log.length, length, "what is over takes nothing more");
});

test("relay passes interim answers on through the leg's hands", () => {
  const { upstream, log } = begin({ response: (head) => ({ ...head, phrase: "Changed" }) });
  upstream.informed(answer(103));
  assert.equal(log.at(-1), "client inform 103 Changed");
});

test("relay ends the client's connection after an answer that came before the request was whole", async () => {
  const { client, upstream, log, done } = begin({ framing: TEN });
  client.data(Buffer.from("half"));
  upstream.head(answer(413), TEN);
  upstream.data(Buffer.from("0123456789"));
  upstream.end([]);
  assert.deepEqual(log.slice(-2), ["client closeAfter", "client end "]);
  assert.deepEqual(await done, { kind: "relayed", status: 413, bytesOut: 4, bytesIn: 10 });
  const length = log.length;
  client.end([]);
  client.gone(GONE);
  client.drained();
  upstream.drained();
  upstream.end([]);
  upstream.failed(BROKEN, false);
  assert.equal(log.length, length);
});

test("relay aborts the upstream where the client goes away", async () => {
  const { client, log, done } = begin({ framing: TEN });
  client.data(Buffer.from("half"));
  client.gone(GONE);
  assert.equal(log.at(-1), "up abort");
  const outcome = await done;
  assert.ok(outcome.kind === "failed");
  assert.deepEqual(outcome, { kind: "failed", failure: GONE, status: undefined, bytesOut: 4, bytesIn: 0 });
});

test("relay tells of an upstream that fails, with what had come", async () => {
  const { client, upstream, log, done } = begin({});
  client.end([]);
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("half"));
  upstream.failed(BROKEN, false);
  assert.deepEqual(await done, { kind: "failed", failure: BROKEN, status: 200, bytesOut: 0, bytesIn: 4 });
  assert.ok(!log.some((line) => line.startsWith("client end")), "a cut body is never ended");
});

test("relay calls a try stale only for an idempotent request without a body, untouched, on a reused connection", async () => {
  const cases = [
    ["stale", "GET", NO_BODY, true, true],
    ["stale", "DELETE", NO_BODY, true, true],
    ["failed", "GET", NO_BODY, true, false],
    ["failed", "GET", NO_BODY, false, true],
    ["failed", "POST", NO_BODY, true, true],
    ["failed", "PATCH", NO_BODY, true, true],
    ["failed", "get", NO_BODY, true, true],
    ["failed", "PUT", TEN, true, true],
    ["failed", "PUT", { kind: "chunked" }, true, true],
    ["failed", "PUT", { kind: "length", length: 0 }, true, true],
  ] as const;
  for (const [kind, method, framing, reused, untouched] of cases) {
    const { upstream, done, parts } = begin({ framing, head: { ...REQUEST, method } });
    parts.reused = reused;
    upstream.failed(BROKEN, untouched);
    assert.equal((await done).kind, kind, `${method} ${framing.kind} ${reused} ${untouched}`);
  }
});

test("relay tries again what the upstream vouches for not having looked at, whatever the method", async () => {
  for (const [kind, framing] of [
    ["stale", NO_BODY],
    ["failed", TEN],
  ] as const) {
    const { upstream, done } = begin({ framing });
    upstream.failed(BROKEN, "unprocessed");
    assert.equal((await done).kind, kind);
  }
});

test("cut aborts the upstream and tells why, once", async () => {
  const { relaying, log, done } = begin({});
  const failure = new Failure("E_INTERNAL", "gate", "Cut by a change of policy");
  relaying.cut(failure);
  relaying.cut(BROKEN);
  assert.equal(log.filter((line) => line === "up abort").length, 1);
  const outcome = await done;
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.failure, failure);
});

test("relay says 100 itself where the upstream is silent for a second, once", (context) => {
  const { clock, log } = beginWaiting(context);
  clock.tick(999);
  assert.ok(!log.includes("client inform 100 Continue"));
  clock.tick(1);
  clock.tick(10_000);
  assert.equal(log.filter((line) => line === "client inform 100 Continue").length, 1);
});

test("relay says no 100 of its own after the upstream's, a final answer, a failure, or for a whole request", (context) => {
  const silencers: ((made: Begun) => void)[] = [
    ({ upstream }) => upstream.informed(answer(100)),
    ({ upstream }) => upstream.head(answer(417), NO_BODY),
    ({ upstream }) => upstream.failed(BROKEN, true),
    ({ client }) => client.gone(GONE),
    ({ relaying }) => relaying.cut(BROKEN),
  ];
  for (const silence of silencers) {
    const { clock, log, ...made } = beginWaiting(context);
    silence({ log, ...made });
    const length = log.length;
    clock.tick(10_000);
    assert.equal(log.length, length);
    clock.reset();
  }
  const { clock, log } = beginWaiting(context, { wholeAtOnce: true });
  clock.tick(10_000);
  assert.ok(!log.includes("client inform 100 Continue"));
});

test("relay still says 100 where another interim answer came first", (context) => {
  const { clock, log, upstream } = beginWaiting(context);
  upstream.informed(answer(103));
  clock.tick(1_000);
  assert.equal(log.at(-1), "client inform 100 Continue");
});

test("relay joins both connections after a valid 101, early bytes first", async () => {
  const { upstream, log, done, client, sockets, deadlines, parts } = begin({
    upgrade: true,
    head: WEBSOCKET,
  });
  client.end([]);
  parts.early = { client: "from client", upstream: "from upstream" };
  upstream.head({ ...answer(101), fields: ACCEPTED }, NO_BODY);
  assert.deepEqual(log.slice(-2), ["up takeOver", "client takeOver 101"]);
  const [browser, origin] = [listenTo(sockets.browser), listenTo(sockets.origin)];
  await Promise.all([browser.until("from upstream"), origin.until("from client")]);
  // What HTTP still says of them is of no account.
  upstream.failed(BROKEN, false);
  upstream.drained();
  sockets.browser.end("bye");
  await origin.ended;
  sockets.origin.end();
  assert.deepEqual(await done, { kind: "relayed", status: 101, bytesOut: 14, bytesIn: 13 });
  deadlines.pass(1);
});

test("relay cuts a WebSocket too, with a reason", async () => {
  const { upstream, done, relaying, client } = begin({ upgrade: true, head: WEBSOCKET });
  client.end([]);
  upstream.head({ ...answer(101), fields: ACCEPTED }, NO_BODY);
  relaying.cut(BROKEN);
  assert.deepEqual(await done, { kind: "failed", failure: BROKEN, status: 101, bytesOut: 0, bytesIn: 0 });
});

test("relay refuses a 101 that nobody asked for, or that does not answer what was asked", async () => {
  const forged = ACCEPTED.map((line) =>
    line.key === "sec-websocket-accept" ? { ...line, value: "x" } : line,
  );
  for (const [upgrade, fields] of [
    [false, ACCEPTED],
    [true, forged],
    [true, []],
  ] as const) {
    const { upstream, log, done } = begin({ upgrade, head: WEBSOCKET });
    upstream.head({ ...answer(101), fields }, NO_BODY);
    const outcome = await done;
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.failure.code, "E_UPSTREAM_PROTOCOL");
    assert.equal(log.at(-1), "up abort");
  }
});

function field(name: string, value = "1"): Field {
  return { name, key: name.toLowerCase(), value };
}

function answer(status: number): ResponseHead {
  return { status, phrase: "OK", minor: 1, fields: [] };
}

const REQUEST: RequestHead = { method: "POST", target: "/", minor: 1, fields: [] };
const KEY = Buffer.from("sixteen bytes ok").toString("base64");
const WEBSOCKET: RequestHead = {
  ...REQUEST,
  method: "GET",
  fields: [field("Upgrade", "websocket"), field("Connection", "Upgrade"), field("Sec-WebSocket-Key", KEY)],
};
const ACCEPTED: FieldLines = [
  field("Upgrade", "websocket"),
  field("Connection", "Upgrade"),
  // RFC 6455 section 1.3.
  field(
    "Sec-WebSocket-Accept",
    createHash("sha1").update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64"),
  ),
];

interface Parts {
  takes: boolean;
  reused: boolean;
  early: { client: string; upstream: string };
}

type Begun = ReturnType<typeof begin>;

/** A relay between two ends that write down all that is asked of them. */
function begin(leg: Partial<Leg>, { wholeAtOnce = false } = {}) {
  const ends = makeEnds();
  const inbound = inboundOf(ends, leg.framing ?? NO_BODY, wholeAtOnce);
  const surroundings = around();
  const relaying = relay(inbound, upstreamOf(ends), { ...LEG, ...leg }, surroundings);
  const { log, parts, heard, sockets } = ends;
  const { client, upstream } = heard;
  assert.ok(client !== undefined && upstream !== undefined);
  return { client, upstream, log, parts, relaying, done: relaying.done, sockets, ...surroundings };
}

function makeEnds() {
  const [near, browser] = duplexPair();
  const [upstreamNear, origin] = duplexPair();
  const parts: Parts = { takes: true, reused: false, early: { client: "", upstream: "" } };
  const heard: { client?: InboundEvents; upstream?: OutboundEvents } = {};
  return { log: [] as string[], parts, heard, near, upstreamNear, sockets: { browser, origin } };
}

type Ends = ReturnType<typeof makeEnds>;

function inboundOf({ log, parts, heard, near }: Ends, framing: Framing, wholeAtOnce: boolean): Inbound {
  return {
    protocol: "http/1.1",
    head: REQUEST,
    framing,
    responded: undefined,
    start(events) {
      log.push("client start");
      heard.client = events;
      if (wholeAtOnce) events.end([]);
    },
    respond: ({ status, phrase }, { kind }) => void log.push(`client respond ${status} ${phrase} ${kind}`),
    inform: ({ status, phrase }) => void log.push(`client inform ${status} ${phrase}`),
    whenLost: () => void log.push("client whenLost"),
    abort: () => void log.push("client abort"),
    closeAfter: () => void log.push("client closeAfter"),
    takeOver({ status }): Raw {
      log.push(`client takeOver ${status}`);
      return { socket: near, early: Buffer.from(parts.early.client) };
    },
    ...sink("client", log, parts),
  };
}

function upstreamOf({ log, parts, heard, upstreamNear }: Ends): Upstream {
  return {
    protocol: "http/1.1",
    peer: undefined,
    websockets: false,
    get reused() {
      return parts.reused;
    },
    send({ method }, { kind }, events) {
      log.push(`up send ${method} ${kind}`);
      heard.upstream = events;
    },
    abort: () => void log.push("up abort"),
    destroy: () => void log.push("up destroy"),
    takeOver(): Raw {
      log.push("up takeOver");
      return { socket: upstreamNear, early: Buffer.from(parts.early.upstream) };
    },
    ...sink("up", log, parts),
  };
}

function sink(name: string, log: string[], parts: Parts) {
  return {
    pause: () => void log.push(`${name} pause`),
    resume: () => void log.push(`${name} resume`),
    write(bytes: Buffer) {
      log.push(`${name} write ${bytes.toString("latin1")}`);
      return parts.takes;
    },
    end: (trailers: FieldLines) => void log.push(`${name} end ${trailers.map((line) => line.name).join()}`),
  };
}

const LEG: Leg = {
  head: REQUEST,
  framing: NO_BODY,
  upgrade: false,
  expectContinue: false,
  response: (head) => head,
  requestTrailers: (trailers) => trailers,
  responseTrailers: (trailers) => trailers,
};

function beginWaiting(context: TestContext, options: { wholeAtOnce?: boolean } = {}) {
  const clock = context.mock.timers;
  clock.enable({ apis: ["setTimeout"] });
  context.after(() => clock.reset());
  return { clock, ...begin({ framing: TEN, expectContinue: true }, options) };
}
