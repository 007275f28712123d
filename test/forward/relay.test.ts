import assert from "node:assert/strict";
import { test } from "node:test";
import { Failure } from "../../src/model/failure.ts";
import { stageOf } from "../support/body-stage.ts";
import { listenTo } from "../support/loopback.ts";
import {
  ACCEPTED,
  answer,
  type Begun,
  begin,
  beginWaiting,
  field,
  NO_BODY,
  REQUEST,
  TEN,
  WEBSOCKET,
} from "./relay-ends.ts";

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

test("relay lets go of an upstream that goes on after the stage found the body's end", async () => {
  const { made, stage } = stageOf();
  const { upstream, log, done } = begin({ answer: (head, framing) => ({ head, framing, body: stage }) });
  upstream.head(answer(200), TEN);
  upstream.data(Buffer.from("abcde"));
  made[0]?.finish();
  assert.equal((await done).kind, "relayed");
  assert.equal(log.includes("up abort"), true);
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

const EXTENDED = { upgrade: true, extended: true, framing: { kind: "chunked" } } as const;

test("relay lets a WebSocket's client go on after the upstream ended its side, until it ends too", async () => {
  const { client, upstream, log, done } = begin(EXTENDED);
  upstream.head(answer(200), { kind: "chunked" });
  upstream.data(Buffer.from("last"));
  upstream.end([]);
  log.length = 0;
  client.data(Buffer.from("more"));
  upstream.drained();
  client.end([]);
  assert.deepEqual(log, ["up write more", "client resume", "up end "]);
  assert.deepEqual(await done, { kind: "relayed", status: 200, bytesOut: 4, bytesIn: 4 });
  client.gone(GONE);
  assert.equal(log.includes("up abort"), false);
});

test("relay ends a WebSocket whose client ended first like any other exchange", async () => {
  const { client, upstream, log, done } = begin(EXTENDED);
  upstream.head(answer(200), { kind: "chunked" });
  client.end([]);
  upstream.data(Buffer.from("more"));
  upstream.end([]);
  assert.deepEqual(log.slice(-2), ["client write more", "client end "]);
  assert.deepEqual(await done, { kind: "relayed", status: 200, bytesOut: 0, bytesIn: 4 });
});

test("relay carries to the other side of a WebSocket what becomes of it after one ended", async () => {
  const gone = begin(EXTENDED);
  gone.upstream.head(answer(200), { kind: "chunked" });
  gone.upstream.end([]);
  assert.deepEqual(gone.log.slice(-1), ["client endSide "]);
  gone.client.gone(GONE);
  assert.equal(gone.log.at(-1), "up abort");
  assert.equal((await gone.done).kind, "failed");

  for (const [reset, kind, last] of [
    [0, "relayed", "client abort 0"],
    [8, "failed", "client endSide "],
  ] as const) {
    const { upstream, log, done } = begin(EXTENDED);
    upstream.head(answer(200), { kind: "chunked" });
    upstream.end([]);
    upstream.failed(new Failure("E_UPSTREAM_PROTOCOL", "upstream", "Reset", { reset }), false);
    assert.equal((await done).kind, kind);
    assert.equal(log.at(-1), last);
  }
});

test("relay cuts a WebSocket that is open for longer than tunnel_lifetime", async () => {
  const { upstream, log, done, deadlines } = begin(EXTENDED, { limits: { tunnel_lifetime: 1_000 } });
  upstream.head(answer(200), { kind: "chunked" });
  deadlines.pass(500);
  assert.equal(log.includes("up abort"), false);
  deadlines.pass(600);
  const outcome = await done;
  assert.ok(outcome.kind === "failed");
  assert.deepEqual([outcome.failure.code, log.at(-1)], ["E_TIMEOUT", "up abort"]);
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
