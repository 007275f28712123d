/** A WebSocket passes unseen after a 101 that proves itself; no other upgrade passes at all (F09, I04, I14 to I16). */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { askConnect, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "ws.example.com";
const KEY = randomBytes(16).toString("base64");
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${KEY}`,
];
const ASK = head("GET /chat HTTP/1.1", `Host: ${HOST}`, ...UPGRADE, "Sec-WebSocket-Protocol: a, b");

let internet: Internet;
let gate: Gate;
let origin: Origin;
let lines: readonly string[] = [];
let early = "";

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const answer = () => head(...lines) + early;
  origin = await createOrigin(internet, { tls: [HOST], bound: true, answer });
  await createOrigin(internet, { answer });
  const rule = { domain: HOST, transform: { Authorization: SECRET } };
  gate = await startGate(internet, { network: { allowlist: [rule, { domain: "plain.example.com" }] } });
  internet.dns.set("plain.example.com", { A: [PUBLIC_V4] });
});
after(() => internet.close());

function accept(key = KEY): string {
  const digest = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  return `Sec-WebSocket-Accept: ${digest.digest("base64")}`;
}

const SWITCH = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];

describe("a WebSocket", () => {
  test("is opened with the secret, and its bytes pass unchanged both ways", async () => {
    [lines, early] = [[...SWITCH, accept(), "Sec-WebSocket-Protocol: b"], "server first"];
    const wire = await inside(internet, gate, HOST);
    const answer = await wire.send(ASK);
    assert.deepEqual([statusOf(answer), oneValue(answer, "sec-websocket-protocol")], [101, "b"]);
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), [internet.canary.secret]);
    assert.equal(oneValue(request, "sec-websocket-key"), KEY);
    await wire.until("the first bytes", (text) => text === "server first");

    const connection = origin.connections.at(-1) as Connection;
    const bytes = randomBytes(200_000);
    const echo: Buffer[] = [];
    wire.socket.on("data", (piece: Buffer) => void echo.push(piece));
    connection.socket.on("data", (piece: Buffer) => void connection.socket.write(piece));
    wire.write(bytes);
    await wire.until("the echo", (text) => text.length === "server first".length + bytes.length);
    assert.ok(Buffer.concat(echo).equals(bytes));
    wire.end();
    await origin.until("the end", () => connection.closed);
    const record = await gate.record({ host: HOST, protocol: "ws" });
    assert.deepEqual([record["status"], record["bytes_out"]], [101, bytes.length]);
  });

  test("that the origin ends is ended for the client", async () => {
    [lines, early] = [[...SWITCH, accept()], ""];
    const wire = await inside(internet, gate, HOST);
    assert.equal(statusOf(await wire.send(ASK)), 101);
    origin.connections.at(-1)?.socket.end();
    assert.equal(await wire.closed(), "end");
  });

  for (const [what, reply] of Object.entries({
    "of another key": [...SWITCH, accept("x")],
    "without a key": SWITCH,
    "to another protocol": [
      "HTTP/1.1 101 Switching Protocols",
      "Upgrade: h2c",
      "Connection: Upgrade",
      accept(),
    ],
    "without Connection: Upgrade": ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", accept()],
  })) {
    test(`whose 101 is ${what} fails, and nothing passes`, async () => {
      [lines, early] = [reply, "smuggled"];
      const wire = await inside(internet, gate, HOST);
      const answer = await wire.send(ASK);
      assertFailed(answer, 502, "E_UPSTREAM_PROTOCOL");
      assert.doesNotMatch(answer.body, /smuggled/);
      await origin.until("the close", () => origin.connections.at(-1)?.closed === true);
    });
  }
});

describe("a WebSocket that is not opened", () => {
  test("because the origin answers with 200 stays HTTP: what follows is judged", async () => {
    [lines, early] = [["HTTP/1.1 200 OK", "Content-Length: 0"], ""];
    const wire = await inside(internet, gate, HOST);
    assert.equal(statusOf(await wire.send(ASK)), 200);
    const next = await wire.send(head("GET / HTTP/1.1", "Host: evil.example.org"));
    assertRefused(next, { status: 421, reason: "names-disagree" });
  });

  test("because its host is unlisted is refused before the upgrade, and over plain HTTP too", async () => {
    assertRefused(await askConnect(internet, "evil.example.org:443"), {
      status: 403,
      reason: "no-rule-matched",
    });
    const wire = await dial(internet);
    const bytes = head("GET http://evil.example.org/ HTTP/1.1", "Host: evil.example.org", ...UPGRADE);
    assertRefused(await wire.send(bytes), { status: 403, reason: "no-rule-matched" });
  });

  test("inside TLS but to a plain listed host passes", async () => {
    [lines, early] = [[...SWITCH, accept()], ""];
    const wire = await dial(internet);
    const bytes = head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com", ...UPGRADE);
    assert.equal(statusOf(await wire.send(bytes)), 101);
  });
});

describe("an upgrade that is no WebSocket, or a bad one,", () => {
  for (const [what, sent] of Object.entries({
    "to h2c": ["Connection: Upgrade", "Upgrade: h2c"],
    "to TLS": ["Connection: Upgrade", "Upgrade: TLS/1.2"],
    "to connect-udp": ["Connection: Upgrade", "Upgrade: connect-udp"],
    "without a key": ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "of a wrong version": [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 7",
      `Sec-WebSocket-Key: ${KEY}`,
    ],
    "not nominated": UPGRADE.slice(1),
    "of two protocols": ["Connection: Upgrade", "Upgrade: websocket, h2c", ...UPGRADE.slice(2)],
  })) {
    test(`${what}, goes on as an ordinary request or not at all`, async () => {
      [lines, early] = [["HTTP/1.1 200 OK", "Content-Length: 0"], ""];
      const before = origin.requests.length;
      const wire = await inside(internet, gate, HOST);
      const answer = await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`, ...sent));
      const request = origin.requests.slice(before)[0];
      if (request === undefined) assert.equal(statusOf(answer), 400);
      else assert.deepEqual(valuesOf(request, "upgrade"), []);
    });
  }
});
