import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { looksLikeHttp, peek } from "../../src/accept/peek.ts";
import type { Raw } from "../../src/model/inbound.ts";
import { around, breakOff, createPair, eventually, listenTo, settle } from "../support/loopback.ts";
import { hello, helloMessage, records, sni } from "../wire/hello-support.ts";

const NOTHING = Buffer.alloc(0);
const HELLO = hello({ extensions: [sni("api.example.com")] });
const TIMEOUT_MS = 10_000;
const LEAVES = [(far: Socket) => far.end(), (far: Socket) => far.destroy(), breakOff] as const;

test("peek waits for the whole hello, byte by byte and record by record, and keeps its bytes", async () => {
  const fragmented = records(helloMessage({ extensions: [sni("api.example.com")] }), 7);
  for (const bytes of [HELLO, fragmented]) {
    const { near, far, surroundings } = wire();
    const peeked = peek({ socket: near, early: NOTHING }, surroundings, TIMEOUT_MS);
    for (const byte of bytes) {
      far.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    const seen = await peeked;
    assert.ok(seen.kind === "hello");
    assert.equal(seen.hello.serverName, "api.example.com");
    assert.deepEqual(seen.bytes, bytes);
    assertLeft(near);
  }
});

test("peek begins with the bytes that came early", async () => {
  const { near, far, surroundings } = wire();
  const peeked = peek({ socket: near, early: HELLO.subarray(0, 20) }, surroundings, TIMEOUT_MS);
  far.write(HELLO.subarray(20));
  assert.deepEqual((await peeked).bytes, HELLO);
});

test("peek takes nothing from the socket where the early bytes are enough", async () => {
  const { near, far, surroundings } = wire();
  far.write("next");
  const peeked = await peek({ socket: near, early: HELLO }, surroundings, TIMEOUT_MS);
  assert.equal(peeked.kind, "hello");
  await settle();
  assertLeft(near);
  const peer = listenTo(near.resume());
  assert.equal(await peer.until("next"), "next");
});

test("peek tells at the first byte what is no TLS", async () => {
  for (const text of ["GET / HTTP/1.1\r\n", "\0", "SSH-2.0-x\r\n", "\x80\x2e\x01"]) {
    const { near, far, surroundings } = wire();
    const peeked = peek({ socket: near, early: NOTHING }, surroundings, TIMEOUT_MS);
    far.write(text, "latin1");
    const seen = await peeked;
    assert.equal(seen.kind, "other");
    assert.equal(seen.bytes.toString("latin1"), text);
    assertLeft(near);
  }
});

test("peek fails on TLS that is no hello, with the socket paused and no deadline left", async () => {
  const tooLong = [22, 3, 1, 0, 4, 1, 255, 255, 255];
  const garbage = [[21, 3, 3, 0, 2, 1, 0], [22, 3, 1, 0, 0], tooLong].map((bytes) => Buffer.from(bytes));
  for (const bytes of garbage) {
    const { near, far, surroundings } = wire();
    const peeked = peek({ socket: near, early: NOTHING }, surroundings, TIMEOUT_MS);
    far.write(bytes);
    await assert.rejects(peeked, { name: "Failure", code: "E_BAD_HELLO", fault: "client" });
    assertLeft(near);
  }
});

test("peek waits so long and no longer, however the bytes drip", async () => {
  const { near, far, surroundings } = wire();
  const peeked = peek({ socket: near, early: NOTHING }, surroundings, TIMEOUT_MS);
  const outcome = assert.rejects(peeked, { code: "E_TIMEOUT", fault: "client" });
  far.write(HELLO.subarray(0, 1));
  await settle(3);
  surroundings.deadlines.pass(TIMEOUT_MS - 1);
  far.write(HELLO.subarray(1, 2));
  await settle(3);
  surroundings.deadlines.pass(1);
  await outcome;
  assertLeft(near);
  // Once: the clock goes on, and nothing more happens.
  surroundings.deadlines.pass(TIMEOUT_MS);
});

test("peek fails where the client ends or breaks off before its hello is whole", async (context) => {
  for (const leave of LEAVES) {
    const { near, far } = await createPair(context);
    near.on("error", () => undefined);
    const surroundings = around();
    const peeked = peek({ socket: near, early: NOTHING }, surroundings, TIMEOUT_MS);
    const outcome = assert.rejects(peeked, { code: "E_BAD_HELLO", fault: "client" });
    far.write(HELLO.subarray(0, 10));
    await eventually(() => near.bytesRead === 10);
    leave(far);
    await outcome;
  }
});

test("peek fails at once where the client had ended before", async (context) => {
  for (const leave of LEAVES) {
    const { near, far } = await createPair(context);
    near.on("error", () => undefined).resume();
    leave(far);
    await eventually(() => near.readableEnded || near.destroyed);
    const peeked = peek({ socket: near, early: HELLO.subarray(0, 10) }, around(), TIMEOUT_MS);
    await assert.rejects(peeked, { code: "E_BAD_HELLO" });
  }
});

test("looksLikeHttp takes a token and a blank, or a token so far", () => {
  for (const text of ["G", "GET", "GET ", "PROPFIND /x", "M-SEARCH * HTTP/1.1", "x".repeat(32)]) {
    assert.equal(looksLikeHttp(Buffer.from(text)), true, text);
  }
  for (const text of ["", " GET", "\r\n", "SSH-2.0-x\r\n", "x".repeat(41), "\x16\x03", "GÉT /", "a:b"]) {
    assert.equal(looksLikeHttp(Buffer.from(text, "latin1")), false, text);
  }
});

function wire() {
  const [near, far] = duplexPair();
  return { near, far, surroundings: around() };
}

/** As whoever comes next needs it: paused, and without anything of ours. */
function assertLeft(socket: Raw["socket"]): void {
  assert.equal(socket.isPaused(), true);
  for (const event of ["data", "end", "close"]) assert.equal(socket.listenerCount(event), 0, event);
}
