/** A WebSocket by way of the base-URL door: opened by a 101 that proves itself, refused in words, cut with its upstream. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, REVERSE_LISTEN } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";
import type { Wire } from "../support/wire-client.ts";

const HOST = "ws.example.com";
const KEY = randomBytes(16).toString("base64");
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${KEY}`,
];
const ASK = head(`GET /${HOST}/chat HTTP/1.1`, OWN_HOST, ...UPGRADE, "Sec-WebSocket-Protocol: a, b");
const ACCEPT = `Sec-WebSocket-Accept: ${createHash("sha1")
  .update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest("base64")}`;
const SWITCH = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];

let internet: Internet;
let gate: Gate;
let origin: Origin;
let reply = "";

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST], bound: true, answer: () => reply });
  gate = await startGate(internet, {
    ...REVERSE_LISTEN,
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
});
after(() => internet.close());

async function open(): Promise<{ wire: Wire; answer: Message; upstream: Connection }> {
  const wire = await dialReverse(internet);
  const answer = await wire.send(ASK);
  return { wire, answer, upstream: origin.connections.at(-1) as Connection };
}

describe("a WebSocket", () => {
  test("is opened with the secret, and its bytes pass unchanged both ways", async () => {
    reply = `${head(...SWITCH, ACCEPT, "Sec-WebSocket-Protocol: b", "Set-Cookie: a=b; Path=/; Domain=x")}server first`;
    const { wire, answer, upstream } = await open();
    assert.deepEqual([statusOf(answer), oneValue(answer, "sec-websocket-protocol")], [101, "b"]);
    assert.equal(oneValue(answer, "set-cookie"), `a=b; Path=/${HOST}`);
    assert.equal(oneValue(answer, "connection"), "Upgrade");
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.equal(request.start, "GET /chat HTTP/1.1");
    assert.deepEqual(valuesOf(request, "authorization"), [internet.canary.secret]);
    assert.deepEqual([oneValue(request, "host"), oneValue(request, "sec-websocket-key")], [HOST, KEY]);
    await wire.until("the first bytes", (text) => text === "server first");
    const bytes = randomBytes(200_000);
    upstream.socket.on("data", (piece: Buffer) => void upstream.socket.write(piece));
    wire.write(bytes);
    await wire.until("the echo", (text) => text.length === "server first".length + bytes.length);
    assert.ok(wire.received.endsWith(bytes.toString("latin1")));
    wire.end();
    await origin.until("the end", () => upstream.closed);
    const record = await gate.record({ host: HOST, protocol: "ws" });
    assert.deepEqual(
      [record["listener"], record["status"], record["path"], record["bytes_out"]],
      ["reverse", 101, "/chat", bytes.length],
    );
  });

  test("ends with its origin, and breaks off with it", async () => {
    reply = head(...SWITCH, ACCEPT);
    const ended = await open();
    ended.upstream.socket.end();
    assert.equal(await ended.wire.closed(), "end");
    const broken = await open();
    broken.upstream.reset();
    assert.equal(await broken.wire.closed(), "error");
  });

  test("whose client breaks off frees its upstream", async () => {
    reply = head(...SWITCH, ACCEPT);
    const { wire, upstream } = await open();
    wire.reset();
    await origin.until("the release", () => upstream.closed);
  });

  test("is cut by a reload that refuses it", async () => {
    reply = head(...SWITCH, ACCEPT);
    const { wire } = await open();
    await gate.reload({ ...REVERSE_LISTEN, network: { allowlist: [] } });
    assert.equal(await wire.closed(), "error");
    await gate.reload({
      ...REVERSE_LISTEN,
      network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
    });
  });
});

describe("a WebSocket that is not opened", () => {
  test("because of its 101 fails, and nothing passes", async () => {
    reply = `${head(...SWITCH, "Sec-WebSocket-Accept: bm90aGluZw==")}smuggled`;
    const { wire, answer } = await open();
    assertFailed(answer, 502, "E_UPSTREAM_PROTOCOL");
    assert.equal(await wire.closed(), "end");
    assert.doesNotMatch(answer.body + wire.received, /smuggled/);
  });

  test("because the origin answers otherwise gets that answer, whole, and nothing more is read", async () => {
    for (const body of [
      respond("no").slice(9),
      "426 Upgrade Required\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    ]) {
      reply = `HTTP/1.1 ${body}`;
      const { wire, answer } = await open();
      assert.deepEqual([answer.body, answer.complete, oneValue(answer, "connection")], ["no", true, "close"]);
      wire.write(ASK);
      await wire.closed();
      assert.equal(wire.received, "");
    }
  });

  test("because its answer is cut is cut", async () => {
    reply = `${head("HTTP/1.1 200 OK", "Content-Length: 100")}begin`;
    const wire = await dialReverse(internet);
    wire.write(ASK);
    await wire.until("the beginning", (text) => text.endsWith("begin"));
    origin.connections.at(-1)?.reset();
    assert.equal(await wire.closed(), "error");
  });

  test("because its host is unlisted is refused before the upgrade", async () => {
    const answer = await askReverse(internet, "GET /evil.example.org/", UPGRADE);
    assertRefused(answer, { status: 403, reason: "no-rule-matched", host: "evil.example.org" });
  });
});

describe("an upgrade that is no WebSocket, or a bad one,", () => {
  for (const [what, sent] of Object.entries({
    "to h2c": ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
    "to TLS": ["Connection: Upgrade", "Upgrade: TLS/1.2"],
    "without a key": ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "of a wrong version": [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 7",
      UPGRADE[3] ?? "",
    ],
    "not nominated": UPGRADE.slice(1),
    "of two protocols": ["Connection: Upgrade", "Upgrade: websocket, h2c", ...UPGRADE.slice(2)],
    "with a body": [...UPGRADE, "Content-Length: 0"],
  })) {
    test(`${what}, goes on as an ordinary request`, async () => {
      reply = respond("plain");
      const seen = origin.requests.length;
      const answer = await askReverse(internet, `GET /${HOST}/`, sent);
      assert.equal(answer.body, "plain");
      const [request = { fields: [] }] = origin.requests.slice(seen);
      assert.deepEqual([...valuesOf(request, "upgrade"), ...valuesOf(request, "http2-settings")], []);
    });
  }
});

test("a WebSocket is opened whatever the fields of the answer are called", async () => {
  const names = ["constructor", "toString", "__proto__", "hasOwnProperty"];
  reply = head(...SWITCH, ACCEPT, ...names.map((name) => `${name}: 1`));
  const { wire, answer } = await open();
  assert.equal(statusOf(answer), 101);
  for (const name of names) assert.equal(oneValue(answer, name), "1", name);
  wire.destroy();
  await gate.record({ host: HOST, protocol: "ws" });
});
