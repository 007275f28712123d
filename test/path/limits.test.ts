/** Slow, large and many: each is cut at its limit, and nobody else notices (K01 to K04, K12). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const HOST = "api.example.com";
const PLAIN = "plain.example.com";
const START = [`GET http://${PLAIN}/ HTTP/1.1`, `Host: ${PLAIN}`];

let internet: Internet;
let gate: Gate;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, PLAIN]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST], bound: true });
  await createOrigin(internet);
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }, { domain: PLAIN }] },
    limits: {
      head_timeout: "400ms",
      handshake_timeout: "400ms",
      idle_timeout: "600ms",
      progress_timeout: "500ms",
      head_bytes: "16KiB",
      head_fields: 100,
      target_bytes: "4KiB",
      trailer_bytes: "1KiB",
      chunk_extension_bytes: "1KiB",
    },
  });
});
after(() => internet.close());

/** Sends a byte at a time, well within any idle time, until the gate has had enough. */
async function drip(wire: Wire, bytes: string): Promise<number> {
  const started = performance.now();
  for (const byte of bytes) {
    if (wire.ending !== undefined) break;
    wire.write(byte);
    await Promise.race([wire.closed(30_000), new Promise((resolve) => setTimeout(resolve, 40))]);
  }
  await wire.closed();
  return performance.now() - started;
}

describe("a slow client", () => {
  const lines = [...START, ...Array.from({ length: 9 }, (_, index) => `X-${index}: slow`)];
  for (const [where, open, bytes] of [
    ["in a plain head", () => dial(internet), head(...lines)],
    [
      "in the head of a CONNECT",
      () => dial(internet),
      head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`, ...lines.slice(2)),
    ],
    [
      "in a head inside TLS",
      () => inside(internet, gate, HOST),
      head("GET / HTTP/1.1", `Host: ${HOST}`, ...lines.slice(2)),
    ],
    ["before its first byte", () => dial(internet), ""],
    ["before the first request inside TLS", () => inside(internet, gate, HOST), ""],
  ] as const) {
    test(`${where} is cut off by the head's deadline, however steadily it drips`, async () => {
      const before = origin.requests.length;
      const took = await drip(await open(), bytes);
      assert.ok(took < 2_500, `${took} ms`);
      assert.equal(origin.requests.length, before);
    });
  }

  for (const [where, bytes] of [
    ["says nothing after CONNECT", ""],
    ["stops within its ClientHello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc"],
  ] as const) {
    test(`that ${where} is cut off by the handshake's deadline`, async () => {
      const wire = await dial(internet);
      await wire.send(head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`), { connect: true });
      const started = performance.now();
      wire.write(bytes);
      await wire.closed();
      assert.ok(performance.now() - started < 2_500);
    });
  }

  test("that stops within a body is cut off, and its upstream is told", async () => {
    const wire = await inside(internet, gate, HOST);
    wire.write(`${head("POST /slow HTTP/1.1", `Host: ${HOST}`, "Content-Length: 100")}begin`);
    await wire.closed();
    const connection = origin.connections.find(({ received }) => received.includes("POST /slow"));
    assert.ok(connection);
    await origin.until("the break", () => connection.closed);
    assert.equal(connection.requests.filter(({ start }) => start.includes("/slow")).length, 0);
  });

  test("that rests between two requests is closed after the idle time, in good order", async () => {
    const wire = await inside(internet, gate, HOST);
    assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`))), 200);
    assert.equal(await wire.closed(), "end");
    assert.equal(wire.received, "");
  });
});

describe("too large", () => {
  const many = Array.from({ length: 150 }, (_, index) => `X-${index}: 1`);
  for (const [what, status, lines] of [
    ["a head of many bytes", 431, [`X: ${"a".repeat(20_000)}`]],
    ["a head of many fields", 431, many],
    ["a head of many fields, framing last", 431, [...many, "Transfer-Encoding: chunked"]],
  ] as const) {
    test(`${what} is ${status}, in plain and inside TLS, and nothing reaches an upstream`, async () => {
      const before = origin.connections.length;
      assert.equal(statusOf(await askPlain(internet, head(...START, ...lines))), status);
      const wire = await inside(internet, gate, HOST);
      assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`, ...lines))), status);
      await wire.closed();
      assert.equal(origin.connections.length, before);
    });
  }

  test("a target is 414", async () => {
    const target = "a".repeat(5_000);
    const bytes = head(`GET http://${PLAIN}/${target} HTTP/1.1`, `Host: ${PLAIN}`);
    assert.equal(statusOf(await askPlain(internet, bytes)), 414);
    assert.equal(
      statusOf(await askInside(internet, gate, HOST, head(`GET /${target} HTTP/1.1`, `Host: ${HOST}`))),
      414,
    );
  });

  test("a head without end is answered before it ends", async () => {
    const wire = await dial(internet);
    wire.write(`${START.join("\r\n")}\r\nX: `);
    for (let count = 0; count < 40 && wire.ending === undefined && wire.received === ""; count += 1)
      wire.write("a".repeat(1_024));
    assert.equal(statusOf(await wire.response()), 431);
  });

  for (const [what, body] of Object.entries({
    trailers: `0\r\nX: ${"a".repeat(2_000)}\r\n\r\n`,
    "chunk extensions": `1;x=${"a".repeat(2_000)}\r\nh\r\n0\r\n\r\n`,
    "many small chunk extensions": `${"1;abcdefghij\r\nh\r\n".repeat(200)}0\r\n\r\n`,
  })) {
    test(`${what} break the request off`, async () => {
      const before = origin.requests.length;
      const wire = await inside(internet, gate, HOST);
      wire.write(head("POST / HTTP/1.1", `Host: ${HOST}`, "Transfer-Encoding: chunked") + body);
      await wire.closed();
      assert.equal(origin.requests.length, before);
    });
  }
});

describe("too many", () => {
  test("connections of one sandbox are refused in words, and the other's are not", async () => {
    const sandbox = (id: string, source: string) => ({
      id,
      source: [source],
      network: { allowlist: [{ domain: HOST, intercept: "always" }] },
    });
    const own = await createInternet();
    try {
      own.dns.set(HOST, { A: [PUBLIC_V4] });
      await createOrigin(own, { tls: [HOST] });
      const far = await startGate(own, {
        sandboxes: [sandbox("one", "127.0.0.2"), sandbox("two", "127.0.0.3")],
        limits: { connections_per_sandbox: 3, connections: 6 },
      });
      const open = (from: string) => dialThrough(own, `${HOST}:443`, { ca: far.ca, from });
      const three = [await open("127.0.0.2"), await open("127.0.0.2"), await open("127.0.0.2")];
      const fourth = await dial(own, { from: "127.0.0.2" });
      const connect = head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`);
      const answer = await fourth.send(connect, { connect: true });
      assert.equal(oneValue(answer, "x-sallyport-reason"), "limit-exceeded");
      await fourth.closed();
      const other = await open("127.0.0.3");
      assert.equal(statusOf(await other.send(head("GET / HTTP/1.1", `Host: ${HOST}`))), 200);
      three[0]?.destroy();
      await far.record({ sandbox: "one", verdict: "deny" });
    } finally {
      await own.close();
    }
  });

  test("refused requests do not use the connections up", async () => {
    for (let count = 0; count < 50; count += 1) {
      assertRefused(
        await askPlain(internet, head("GET http://no.example.org/ HTTP/1.1", "Host: no.example.org")),
        {
          status: 403,
          reason: "no-rule-matched",
        },
      );
    }
    const end = Date.now() + 5_000;
    // The scrape itself is no client connection.
    while ((await gate.metrics()).sum("sallyport_connections") > 0)
      assert.ok(Date.now() < end, "connections leak");
  });
});
