import assert from "node:assert/strict";
import { type Duplex, duplexPair } from "node:stream";
import { type TestContext, test } from "node:test";
import { type Admit, splice } from "../../src/forward/splice.ts";
import { Failure } from "../../src/model/failure.ts";
import type { Raw } from "../../src/model/inbound.ts";
import type { Limits } from "../../src/model/limits.ts";
import {
  around,
  breakOff,
  createPair,
  eventually,
  listenTo,
  type Peer,
  settle,
} from "../support/loopback.ts";

const NOTHING = Buffer.alloc(0);
const HOUR = 3_600_000;

test("splice carries bytes both ways, those that came early first, and counts them", async (context) => {
  const { client, origin, joined } = await join(context, { clientEarly: "hello ", originEarly: "banner " });
  client.send("world");
  await origin.until("hello world");
  origin.send("answer");
  await client.until("banner answer");
  client.socket.end();
  origin.socket.end();
  assert.deepEqual(await joined.done, { bytesOut: 11, bytesIn: 13, failure: undefined });
});

test("splice passes an end on in one direction and goes on in the other", async (context) => {
  for (const half of ["client", "origin"] as const) {
    const made = await join(context);
    const [first, second] = half === "client" ? [made.client, made.origin] : [made.origin, made.client];
    first.send("question");
    first.socket.end();
    assert.equal(await second.ended, "end");
    assert.equal(second.text, "question");
    second.send("answer");
    await first.until("answer");
    second.socket.end();
    assert.equal(await first.ended, "end");
    assert.equal((await made.joined.done).failure, undefined);
    await eventually(() => made.near.destroyed && made.far.destroyed);
  }
});

test("splice passes on an end that came before it began", async (context) => {
  const client = await createPair(context);
  const upstream = await createPair(context);
  client.far.end("all that it says");
  const seen = listenTo(client.near);
  await seen.ended;
  client.near.removeAllListeners("data");
  const raw = { socket: client.near, early: Buffer.from(seen.text) };
  const joined = splice(raw, { socket: upstream.near, early: NOTHING }, around());
  const origin = listenTo(upstream.far);
  assert.equal(await origin.ended, "end");
  assert.equal(origin.text, "all that it says");
  upstream.far.end("answer");
  assert.equal(await listenTo(client.far).ended, "end");
  assert.deepEqual(await joined.done, { bytesOut: 16, bytesIn: 6, failure: undefined });
});

test("splice ends at once where a side was gone before it began", async (context) => {
  const client = await createPair(context);
  const upstream = await createPair(context);
  client.near.destroy();
  await new Promise((resolve) => client.near.once("close", resolve));
  const raws: [Raw, Raw] = [
    { socket: client.near, early: NOTHING },
    { socket: upstream.near, early: NOTHING },
  ];
  await splice(...raws, around()).done;
  assert.equal(await listenTo(upstream.far).ended, "reset");
});

test("splice passes a reset on as a reset: it must not look like an end", async (context) => {
  for (const half of ["client", "origin"] as const) {
    const made = await join(context);
    const [first, second] = half === "client" ? [made.client, made.origin] : [made.origin, made.client];
    first.send("half");
    await second.until("half");
    const socket = half === "client" ? made.clientFar : made.originFar;
    breakOff(socket);
    assert.equal(await second.ended, "reset");
    const { bytesOut, bytesIn } = await made.joined.done;
    assert.equal(bytesOut + bytesIn, 4);
  }
});

test("splice passes a reset on even after one side had ended", async (context) => {
  const made = await join(context);
  made.client.socket.end();
  await made.origin.ended;
  made.origin.send("half an answer");
  await made.client.until("half");
  breakOff(made.originFar);
  await made.joined.done;
  assert.equal(await made.client.ended, "reset");
});

test("splice stops reading from one side while the other does not read", async (context) => {
  const made = await join(context);
  made.originFar.pause();
  const piece = Buffer.alloc(1_000_000);
  const total = 40;
  for (let sent = 0; sent < total; sent += 1) made.client.socket.write(piece);
  await eventually(() => made.near.isPaused());
  await settle();
  assert.ok(made.near.bytesRead < (total - 10) * piece.length);
  made.originFar.resume();
  made.client.socket.end();
  assert.equal(await made.origin.ended, "end");
  assert.equal(made.origin.text.length, total * piece.length);
});

test("splice cuts a tunnel in which nothing moves, and none in which something does", async (context) => {
  const made = await join(context, { limits: { tunnel_idle_timeout: HOUR } });
  for (const peer of [made.client, made.origin]) {
    made.deadlines.pass(HOUR - 1);
    peer.send("x");
    await (peer === made.client ? made.origin : made.client).until("x");
  }
  made.deadlines.pass(HOUR - 1);
  await settle();
  assert.equal(made.client.ending, undefined);
  made.deadlines.pass(1);
  const { failure } = await made.joined.done;
  assert.equal(failure?.code, "E_TIMEOUT");
  assert.deepEqual([await made.client.ended, await made.origin.ended], ["reset", "reset"]);
});

test("splice cuts a tunnel that is older than it may be, however busy", async (context) => {
  const made = await join(context, { limits: { tunnel_lifetime: HOUR } });
  made.deadlines.pass(HOUR - 1);
  made.client.send("x");
  await made.origin.until("x");
  made.deadlines.pass(1);
  assert.equal((await made.joined.done).failure?.code, "E_TIMEOUT");
});

test("splice gives the last bytes time to leave, and cuts where nobody takes them", async () => {
  for (const reads of [true, false]) {
    const surroundings = around({ tunnel_idle_timeout: HOUR });
    const [near, far] = duplexPair();
    const [upstream, origin] = duplexPair();
    const joined = splice(raw(near, ""), raw(upstream, ""), surroundings);
    origin.end("last words");
    far.end();
    origin.resume();
    assert.equal((await joined.done).bytesIn, 10);
    surroundings.deadlines.pass(HOUR - 1);
    await settle();
    assert.equal(near.destroyed, false);
    if (reads) assert.equal(await listenTo(far).ended, "end");
    else surroundings.deadlines.pass(1);
    await eventually(() => near.destroyed && upstream.destroyed);
    assert.equal(near.errored, null);
    assert.equal(near.writableFinished, reads);
  }
});

test("splice keeps early bytes within what the other side takes", async () => {
  const [near, far] = duplexPair();
  const [upstream, origin] = duplexPair();
  splice(raw(near, "x".repeat(1_000_000)), raw(upstream, ""), around());
  far.write("more");
  await settle();
  assert.equal(near.isPaused(), true);
  const peer = listenTo(origin);
  await peer.until("more");
  assert.equal(peer.text.length, 1_000_004);
});

test("splice holds a client's first bytes until they are admitted, and none after", async (context) => {
  const seen: string[] = [];
  const admit = (bytes: Buffer): boolean => {
    seen.push(bytes.toString("latin1"));
    return bytes.length >= 6;
  };
  const { client, origin, joined } = await join(context, { clientEarly: "abc", admit });
  origin.send("first");
  await client.until("first");
  assert.equal(origin.text, "");
  client.send("def");
  await origin.until("abcdef");
  client.send("ghi");
  await origin.until("abcdefghi");
  assert.deepEqual(seen, ["abc", "abcdef"]);
  client.socket.end();
  origin.socket.end();
  assert.deepEqual(await joined.done, { bytesOut: 9, bytesIn: 5, failure: undefined });
});

test("splice sends nothing of what is not admitted, and leaves the client open for the last word", async (context) => {
  const failure = new Failure("E_BAD_HELLO", "client", "For another name");
  for (const thrown of [failure, new TypeError("Unforeseen")]) {
    const admit = (): boolean => {
      throw thrown;
    };
    const { client, origin, joined, near } = await join(context, { admit });
    client.send("secret");
    const { failure: told, bytesOut } = await joined.done;
    assert.equal(told?.code, thrown === failure ? "E_BAD_HELLO" : "E_INTERNAL");
    assert.equal(bytesOut, 0);
    assert.equal(await origin.ended, "reset");
    assert.equal(origin.text, "");
    near.end("last word");
    assert.equal(await client.ended, "end");
    assert.equal(client.text, "last word");
  }
});

test("splice passes on the end of a client that said nothing, and none that came within its first words", async (context) => {
  const admit = (): boolean => false;
  const silent = await join(context, { admit });
  silent.client.socket.end();
  assert.equal(await silent.origin.ended, "end");
  silent.origin.socket.end("answer");
  assert.equal((await silent.joined.done).bytesIn, 6);
  const { client, origin, joined } = await join(context, { clientEarly: "half", admit });
  client.socket.end();
  assert.equal((await joined.done).failure?.code, "E_BAD_HELLO");
  assert.equal(await origin.ended, "reset");
});

test("splice gives a client's first words, once begun, the time of a handshake, whoever else speaks", async (context) => {
  let whole = false;
  const admit = (): boolean => whole;
  const limits = { handshake_timeout: 1_000, tunnel_idle_timeout: HOUR };
  const { client, origin, joined, deadlines } = await join(context, { limits, admit });
  deadlines.pass(5_000);
  client.send("a");
  await settle();
  deadlines.pass(600);
  origin.send("banner");
  client.send("b");
  await client.until("banner");
  await settle();
  deadlines.pass(600);
  const { failure, bytesOut } = await joined.done;
  assert.deepEqual([failure?.code, failure?.fault, bytesOut], ["E_TIMEOUT", "client", 0]);
  assert.match(failure?.message ?? "", /no whole ClientHello/);
  assert.equal(await origin.ended, "reset");

  const quick = await join(context, { limits, admit });
  quick.client.send("a");
  await settle();
  whole = true;
  quick.client.send("b");
  await quick.origin.until("ab");
  quick.deadlines.pass(5_000);
  quick.client.send("c");
  await quick.origin.until("abc");
});

test("cut resets both sides and tells why, once", async (context) => {
  const made = await join(context);
  const failure = new Failure("E_INTERNAL", "gate", "Cut by a change of policy");
  made.joined.cut(failure);
  made.joined.cut(new Failure("E_INTERNAL", "gate", "Again"));
  assert.equal((await made.joined.done).failure, failure);
  assert.deepEqual([await made.client.ended, await made.origin.ended], ["reset", "reset"]);
});

test("splice hears errors of streams that are no sockets", async () => {
  const [near, far] = duplexPair();
  const [upstream, origin] = duplexPair();
  const joined = splice({ socket: near, early: NOTHING }, { socket: upstream, early: NOTHING }, around());
  listenTo(far);
  listenTo(origin);
  near.destroy(new Error("Broken"));
  assert.deepEqual(await joined.done, { bytesOut: 0, bytesIn: 0, failure: undefined });
  assert.equal(upstream.destroyed, true);
});

interface JoinOptions {
  readonly clientEarly?: string;
  readonly originEarly?: string;
  readonly limits?: Partial<Limits>;
  readonly admit?: Admit;
}

async function join(
  context: TestContext,
  { clientEarly = "", originEarly = "", limits = {}, admit }: JoinOptions = {},
) {
  const client = await createPair(context);
  const upstream = await createPair(context);
  const surroundings = around(limits);
  const judged = admit === undefined ? surroundings : { ...surroundings, admit };
  const joined = splice(raw(client.near, clientEarly), raw(upstream.near, originEarly), judged);
  const peers: { client: Peer; origin: Peer } = {
    client: listenTo(client.far),
    origin: listenTo(upstream.far),
  };
  return {
    ...peers,
    joined,
    deadlines: surroundings.deadlines,
    near: client.near,
    far: client.far,
    upstreamNear: upstream.near,
    clientFar: client.far,
    originFar: upstream.far,
  };
}

function raw(socket: Duplex, early: string): Raw {
  return { socket, early: Buffer.from(early, "latin1") };
}
