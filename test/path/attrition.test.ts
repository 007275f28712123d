/** Clients that cost much and give little: each is held to what is its own, and none goes unseen (K01, K03, L08). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askPlain, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { openWire } from "../support/h2-client.ts";
import { block, FLAG, frame, openFrames, PREFACE, TYPE } from "../support/h2-frames.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import { statusOf } from "../support/message-reader.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { dial } from "../support/wire-client.ts";
import { hello, sni } from "../wire/hello-support.ts";

const PLAIN = "plain.example.com";
const TALKER = "talker.example.com";
const HOST = "h2.example.com";
const TUNNEL = "tunnel.example.com";
const SPEAKER = "11.0.0.11";
const GET = head(`GET http://${PLAIN}/ HTTP/1.1`, `Host: ${PLAIN}`);
const ANSWER = 40_000;
/** Connections that one source may have. */
const EACH = 40;

let internet: Internet;
let gate: Gate;
let answered = 0;

before(async () => {
  internet = await createInternet();
  for (const name of [PLAIN, TALKER]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(HOST, { A: [SPEAKER] });
  // No answer to the first query: whoever asks for this name waits a while.
  internet.dns.set(TUNNEL, { silent: true }, { A: [SPEAKER] });
  const answer = (): string => {
    answered += 1;
    return respond("x".repeat(ANSWER));
  };
  await createOrigin(internet, { answer });
  await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => void socket.write(Buffer.alloc(30_000_000)),
  });
  await createH2Origin(internet, {
    address: SPEAKER,
    names: [HOST, TUNNEL],
    bound: true,
    serve: (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    },
  });
  gate = await startGate(internet, {
    network: {
      allowlist: [
        { domain: HOST, transform: { Authorization: SECRET } },
        { domain: PLAIN },
        { domain: TUNNEL },
        { domain: TALKER, ports: [5432], protocol: "tcp" },
      ],
    },
    limits: {
      idle_timeout: "1s",
      progress_timeout: "1s",
      connections: EACH + 20,
      connections_per_sandbox: EACH,
    },
  });
});
after(() => internet.close());

test("whoever sends request after request and reads no answer is answered as much as a socket holds, and cut off", async () => {
  const memory = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gate.pid}/status`, "latin1"))?.[1]) * 1_024;
  const wire = await dial(internet);
  wire.socket.pause();
  const before = memory();
  for (let round = 0; round < 100 && wire.ending === undefined; round += 1) {
    wire.socket.write(GET.repeat(100));
    await delay(50);
  }
  await gate.record({ host: PLAIN });
  const most = 16_000_000;
  assert.ok(answered * ANSWER < most, `${answered} answers`);
  assert.ok(memory() - before < most * 4);
  wire.socket.resume();
  assert.equal(await wire.closed(), "error");
});

test("a refusal of a malformed stream that no window lets through waits no longer than progress_timeout", async () => {
  const wire = await openWire(internet, gate, HOST, ["h2"]);
  // SETTINGS_INITIAL_WINDOW_SIZE is 0.
  const settings = frame(TYPE.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0));
  const bad = block(":method", "GET", ":scheme", "http", ":authority", HOST, ":path", "/");
  wire.write(
    Buffer.concat([Buffer.from(PREFACE), settings, frame(TYPE.headers, FLAG.end | FLAG.endHeaders, 1, bad)]),
  );
  await wire.closed(6_000);
});

test("a refused tunnel whose client reads nothing waits no longer than progress_timeout", async () => {
  const wire = await dial(internet);
  wire.write(head(`CONNECT ${TALKER}:5432 HTTP/1.1`, `Host: ${TALKER}:5432`));
  await wire.until("the answer", (received) => received.includes("200"));
  wire.socket.pause();
  await delay(300);
  wire.write(hello({ extensions: [sni("other.example.com")] }));
  await gate.record({ host: TALKER, reason: "names-disagree" });
  const open = async (): Promise<number> => (await gate.metrics()).sum("sallyport_connections");
  const end = Date.now() + 6_000;
  while ((await open()) > 0) assert.ok(Date.now() < end, "it is still open");
});

test("SETTINGS again and again keep no HTTP/2 connection alive", async () => {
  const client = await openFrames(internet, gate, HOST);
  for (let round = 0; round < 20 && !client.closed; round += 1) {
    client.send(frame(TYPE.settings, 0, 0));
    await delay(250);
  }
  assert.equal(client.closed, true);
});

test("a connection that is looked into and asks for nothing has a record of its own", async () => {
  const before = gate.records.length;
  const wire = await openWire(internet, gate, HOST);
  // TLS 1.3: the gate has the last word of the handshake once it says something.
  await delay(200);
  wire.destroy();
  const record = await gate.recordAt(before);
  const { protocol, visibility, method, host, verdict, reason, rule, status, injected } = record;
  assert.deepEqual(
    { protocol, visibility, method, host, verdict, reason, rule, status, injected },
    {
      protocol: "tls-tunnel",
      visibility: "destination",
      method: "CONNECT",
      host: HOST,
      verdict: "allow",
      reason: "rule-allows",
      rule: HOST,
      status: 200,
      injected: [],
    },
  );
});

test("silent connections take one source's places, and nobody else's", async () => {
  // Whatever earlier tests left open has gone.
  await delay(1_500);
  let refused = 0;
  for (let count = 0; count < EACH + 30; count += 1) {
    const wire = await dial(internet, { from: "127.0.0.2" }).catch(() => undefined);
    wire?.socket.on("close", () => {
      refused += 1;
    });
    if (wire === undefined) refused += 1;
  }
  assert.equal(statusOf(await askPlain(internet, GET)), 200);
  assert.ok(refused >= 30, `${refused} were refused`);
});

test("what a SOCKS client sends while the gate still dials is not lost", async () => {
  const wire = await dial(internet);
  wire.write(Buffer.of(5, 1, 0));
  await wire.until("the method", (received) => received.length === 2);
  const name = Buffer.from(TUNNEL);
  wire.write(Buffer.concat([Buffer.of(5, 1, 0, 3, name.length), name, Buffer.of(1, 187)]));
  await delay(300);
  wire.write("SSH-2.0-client\r\n");
  // Read, it is no TLS; unread, nobody would notice before the deadline.
  await wire.closed(6_000);
  await gate.record({ host: TUNNEL, reason: "needs-inspection" });
});
