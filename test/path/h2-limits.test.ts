/** What no honest client does over HTTP/2 (H01 to H11, H20): the gate closes, stays up and serves the next one. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, describe, test } from "node:test";
import { askPlain } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import type { FramePeer } from "../support/h2-frames.ts";
import {
  block,
  FLAG,
  frame,
  getBlock,
  nameOf,
  openFrames,
  PREFACE,
  TYPE,
  uint32,
} from "../support/h2-frames.ts";
import type { H2Origin } from "../support/h2-origin.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "a.example.com";
const MIB = 1_048_576;
/** A client that still sends may lose the GOAWAY to the reset of its connection. */
const CALM = /^(goaway\(11\))?$/;
const WHOLE = FLAG.endHeaders | FLAG.end;

let internet: Internet;
let gate: Gate;
let origin: H2Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    serve: (stream, headers) => {
      if (headers[":path"] === "/hang") return;
      stream.respond({ ":status": 200 });
      if (headers[":path"] === "/big") stream.end(Buffer.alloc(MIB / 4));
      else stream.end("ok");
    },
  });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
    limits: {
      h2_streams: 20,
      h2_resets_per_minute: 100,
      h2_control_frames_per_minute: 200,
      progress_timeout: "500ms",
      idle_timeout: "1s",
      head_timeout: "500ms",
    },
  });
});
after(() => internet.close());
afterEach(async () => {
  const client = await openH2(internet, gate, HOST);
  assert.equal((await client.ask([])).body, "ok", "the gate serves the next one");
  client.session.destroy();
});

function get(stream: number, path = "/"): Buffer {
  const head = block(":method", "GET", ":scheme", "https", ":authority", HOST, ":path", path);
  return frame(TYPE.headers, WHOLE, stream, head);
}

function goaways(client: FramePeer): string {
  return client.frames
    .filter(({ type }) => type === TYPE.goaway)
    .map(nameOf)
    .join(" ");
}

async function closedWith(client: FramePeer, expected: RegExp): Promise<void> {
  await client.until("the close", () => client.closed);
  assert.match(goaways(client), expected);
}

describe("a flood of", () => {
  test("streams that are reset at once is cut short, and their requests with it", async () => {
    const client = await openFrames(internet, gate, HOST);
    const before = origin.requests.length;
    for (let stream = 1; stream < 20_000; stream += 2)
      client.send(get(stream, "/hang"), frame(TYPE.reset, 0, stream, uint32(8)));
    await closedWith(client, CALM);
    assert.ok(origin.requests.length - before <= 101);
    await origin.until("no stream left", () => origin.open === 0);
  });

  test("streams that the gate is made to reset is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    for (let stream = 1; stream < 2_000; stream += 2) {
      // A window that overflows is a fault of the stream (CVE-2025-8671).
      const overflow = frame(TYPE.window, 0, stream, uint32(0x7fffffff));
      client.send(get(stream, "/hang"), overflow);
    }
    await client.until("the close", () => client.closed);
  });

  test("malformed requests is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    const bad = block(":method", "GET", ":scheme", "http", ":authority", HOST, ":path", "/");
    for (let stream = 1; stream < 2_000; stream += 2) client.send(frame(TYPE.headers, WHOLE, stream, bad));
    await client.until("the close", () => client.closed);
  });

  test("PING is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(...Array.from({ length: 1_000 }, () => frame(TYPE.ping, 0, 0, Buffer.alloc(8))));
    await closedWith(client, CALM);
  });

  test("SETTINGS is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(...Array.from({ length: 1_000 }, () => frame(TYPE.settings, 0, 0)));
    await closedWith(client, CALM);
  });

  test("empty DATA is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(frame(TYPE.headers, FLAG.endHeaders, 1, getBlock(HOST)));
    client.send(...Array.from({ length: 1_000 }, () => frame(TYPE.data, 0, 1)));
    await client.until("the close", () => client.closed);
  });

  test("CONTINUATION without an end is cut short", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(frame(TYPE.headers, FLAG.end, 1, getBlock(HOST)));
    client.send(...Array.from({ length: 1_000 }, () => frame(TYPE.continuation, 0, 1)));
    await client.until("the close", () => client.closed);
  });
});

describe("a head", () => {
  test("with too many fields is 431 and a record, for as long as the announced size takes them", async () => {
    const client = await openH2(internet, gate, HOST);
    const fields = (count: number) => Array.from({ length: count }, (_, at) => [`x-${at}`, "v"]).flat();
    for (const count of [300, 600, 1_900]) {
      const refused = gate.records.filter(({ status }) => status === 431).length;
      assert.equal((await client.ask(fields(count))).status, 431);
      await gate.record({ status: 431, protocol: "h2", failure: "E_BAD_REQUEST" });
      assert.equal(gate.records.filter(({ status }) => status === 431).length, refused + 1);
    }
    // Past the announced size it is reset by the library, which tells nobody.
    const answer = await client.ask(fields(3_000)).catch(() => undefined);
    assert.ok(Number.isNaN(answer?.status ?? Number.NaN), "no answer in words");
    assert.equal((await client.ask([])).status, 200);
  });

  test("with a target that is too long is 414", async () => {
    const client = await openH2(internet, gate, HOST);
    assert.equal((await client.ask([":path", `/${"a".repeat(40_000)}`])).status, 414);
  });

  test("that a small block blows up is refused before it is whole (HPACK)", async () => {
    const client = await openFrames(internet, gate, HOST);
    const value = Buffer.from("v".repeat(3_000));
    const indexed = Buffer.concat([
      Buffer.of(0x40, 1, 0x78),
      Buffer.of(127, ((3_000 - 127) & 127) | 128, (3_000 - 127) >> 7),
      value,
    ]);
    const bomb = Buffer.concat([getBlock(HOST), indexed, Buffer.alloc(8_000, 0x80 | 62)]);
    const before = origin.requests.length;
    client.send(frame(TYPE.headers, WHOLE, 1, bomb));
    await client.until("the refusal", () => client.closed || /reset|END/.test(client.seen(1)));
    assert.equal(origin.requests.length, before);
  });

  test("of garbage ends the connection", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(frame(TYPE.headers, WHOLE, 1, Buffer.alloc(100, 0xff)));
    await closedWith(client, /^goaway\(9\)$/);
  });
});

describe("a client that stalls", () => {
  test("with windows that never open loses its streams, and the gate keeps nothing", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(frame(TYPE.settings, 0, 0, Buffer.concat([Buffer.of(0, 4), uint32(0)])));
    const streams = Array.from({ length: 20 }, (_, at) => at * 2 + 1);
    client.send(...streams.map((stream) => get(stream, "/big")));
    await client.until("the resets", () =>
      streams.every((stream) => client.seen(stream).endsWith("reset(8)")),
    );
    const bytes =
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gate.pid}/status`, "latin1"))?.[1]) * 1024;
    assert.ok(bytes < 400 * MIB);
  });

  test("in its body loses its stream", async () => {
    const client = await openFrames(internet, gate, HOST);
    client.send(
      frame(
        TYPE.headers,
        FLAG.endHeaders,
        1,
        block(":method", "POST", ":scheme", "https", ":authority", HOST, ":path", "/hang"),
      ),
    );
    await client.until("the reset", () => client.seen(1) === "reset(8)");
  });

  test("before its preface, or between streams, is sent away", async () => {
    const silent = await openFrames(internet, gate, HOST);
    await closedWith(silent, /^goaway\(0\)$/);
    const idle = await openFrames(internet, gate, HOST);
    idle.send(get(1));
    await idle.until("the answer", () => idle.seen(1).endsWith("END]"));
    await closedWith(idle, /^goaway\(0\)$/);
  });
});

test("more streams than announced are refused, and nothing of them leaves", async () => {
  const client = await openFrames(internet, gate, HOST);
  await client.until("SETTINGS to be taken", () => true);
  const ping = frame(TYPE.ping, 0, 0, Buffer.alloc(8));
  client.send(ping);
  const before = origin.requests.length;
  for (let stream = 1; stream < 60; stream += 2) client.send(get(stream, "/hang"));
  await client.until("the refusals", () => client.seen(59) === "reset(7)");
  await origin.until("the others", () => origin.requests.length - before >= 20);
  assert.equal(origin.requests.length - before, 20);
  client.socket.destroy();
});

test("HTTP/2 in clear is no HTTP here", async () => {
  const answer = await askPlain(internet, PREFACE);
  assert.match(answer.start, /^HTTP\/1\.1 (400|505) /);
});
