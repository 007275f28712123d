/** Events of a stream reach the client within 100 ms of the origin's write, in HTTP/1.1 and in HTTP/2, beside 200 other connections. */
import assert from "node:assert/strict";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { after, before, describe, test } from "node:test";
import { setInterval as ticks } from "node:timers/promises";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import type { Wire } from "../support/wire-client.ts";

const HOST = "events.example.com";
const EVERY_MS = 50;
const EVENTS = 100;
const BOUND_MS = 100;
/** Keep-alive connections that ask again and again, and streams with an event now and then. */
const ASKING = 100;
const LISTENING = 100;
const PAUSE_MS = 1_000;

let internet: Internet;
let gate: Gate;
const over = new AbortController();

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const origin = await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    serve: () => undefined,
    options: { allowHTTP1: true },
  });
  origin.server.on("request", answer);
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { "X-Key": SECRET } }] },
    limits: { pool_connections: 1_000, pool_connections_per_sandbox: 1_000 },
  });
  const { signal } = over;
  for (let at = 0; at < ASKING; at += 1) void keepAsking(await open("/small"), signal);
  for (let at = 0; at < LISTENING; at += 1) await open(`/events?every=${PAUSE_MS}`);
});
after(async () => {
  over.abort();
  await internet.close();
});

describe("beside 200 other connections each event reaches its client within 100 ms of the origin's write:", () => {
  test("HTTP/1.1", async (context) => {
    const delays: number[] = [];
    const wire = await inside(internet, gate, HOST);
    wire.socket.on("data", reader(delays));
    wire.write(head(`GET /events?every=${EVERY_MS} HTTP/1.1`, `Host: ${HOST}`));
    await wire.until("all events", () => delays.length >= EVENTS, EVENTS * EVERY_MS * 4);
    wire.destroy();
    judge(context, delays);
  });

  test("HTTP/2", async (context) => {
    const delays: number[] = [];
    const { open: openStream, session } = await openH2(internet, gate, HOST);
    const stream = openStream([":path", `/events?every=${EVERY_MS}`], true);
    const read = reader(delays);
    await new Promise<void>((resolve, reject) => {
      stream.on("close", () => reject(new Error("The stream ended")));
      stream.on("data", (bytes: Buffer) => {
        read(bytes);
        if (delays.length >= EVENTS) resolve();
      });
    });
    session.destroy();
    judge(context, delays);
  });
});

function judge(context: { diagnostic(message: string): void }, delays: readonly number[]): void {
  const sorted = delays.toSorted((a, b) => a - b);
  const [p50 = Number.NaN, p99 = Number.NaN] = [0.5, 0.99].map(
    (at) => sorted[Math.floor(at * sorted.length)],
  );
  const most = sorted.at(-1) ?? Number.NaN;
  const shown = [p50, p99, most].map((ms) => ms.toFixed(1)).join(", ");
  context.diagnostic(`${delays.length} events: p50, p99 and most ${shown} ms`);
  assert.ok(most <= BOUND_MS, `an event took ${most} ms`);
}

/** Each event carries the time of its write; both ends read one clock. */
function reader(delays: number[]): (bytes: Buffer) => void {
  let text = "";
  return (bytes) => {
    const now = performance.now();
    const events = (text + bytes.toString("latin1")).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const written = /data: ([0-9.]+)$/.exec(event)?.[1];
      if (written !== undefined) delays.push(now - Number(written));
    }
  };
}

function answer(request: Http2ServerRequest, response: Http2ServerResponse): void {
  const every = Number(/every=(\d+)/.exec(request.url)?.[1] ?? 0);
  if (every === 0) {
    response.writeHead(200, { "content-length": 2 });
    response.end("ok");
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(": begin\n\n");
  const timer = setInterval(() => void response.write(`data: ${performance.now()}\n\n`), every);
  response.on("close", () => clearInterval(timer));
}

async function open(path: string): Promise<Wire> {
  const wire = await inside(internet, gate, HOST);
  wire.write(head(`GET ${path} HTTP/1.1`, `Host: ${HOST}`));
  await wire.until("an answer", (text) => text.startsWith("HTTP/1.1 200"));
  return wire;
}

async function keepAsking(wire: Wire, signal: AbortSignal): Promise<void> {
  try {
    await wire.response();
    for await (const _ of ticks(PAUSE_MS, undefined, { signal })) {
      await wire.send(head("GET /small HTTP/1.1", `Host: ${HOST}`));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
