/** The transparency oracle for WebSockets over HTTP/2 (RFC 8441): each case makes the same transcript on both sides, direct and through the gate. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { after, before, describe, test } from "node:test";
import { connect as startTls, type TLSSocket } from "node:tls";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { answerOf, openWire } from "../support/h2-client.ts";
import type { H2Origin } from "../support/h2-origin.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { closes, echo, SIZES, WS_CASES, type WsCase } from "../support/websocket-cases.ts";
import { OPCODE } from "../support/websocket-frames.ts";
import { type Side, sideOf } from "../support/websocket-side.ts";

const HOST = "ws.example.com";
const CASES: readonly WsCase[] = [
  ...WS_CASES,
  {
    name: "the beginning of the secret, with nothing behind it",
    async client(side) {
      side.say(OPCODE.text, internet.canary.secret.slice(0, 12));
      await closes(side, 1);
    },
  },
  {
    name: "a connection that the origin cuts",
    cut: "origin",
    client: (side) => side.say(OPCODE.text, "one"),
    async origin(side) {
      await side.next();
      const port = side.stream.session?.socket.remotePort;
      for (const socket of origin.sockets) if (socket.remotePort === port) socket.resetAndDestroy();
    },
    failure: "E_UPSTREAM_PROTOCOL",
  },
];

let internet: Internet;
let gate: Gate;
let origin: H2Origin;
let secrets = 0;
/** By path. */
const running = new Map<string, Running>();

interface Running {
  readonly one: WsCase;
  readonly begun: (head: readonly string[], side: Side) => void;
}

/** To the origin, direct or through the gate. */
interface Way {
  readonly session: ClientHttp2Session;
  /** Breaks the connection off. */
  readonly cut: () => void;
}

interface Transcript {
  readonly informed: readonly (readonly string[])[];
  readonly head: readonly string[];
  readonly client: readonly string[];
  readonly asked: readonly string[];
  readonly origin: readonly string[];
  /** To the origin, and to the client. */
  readonly bytes: readonly number[];
}

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    options: Object.assign({ settings: { enableConnectProtocol: true } }, { strictSingleValueFields: false }),
    serve,
  });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { "X-Key": SECRET } }] },
  });
});
after(() => internet.close());

describe("a WebSocket's transcript over HTTP/2 is the same direct and through the gate:", () => {
  const ways: { direct?: Way; through?: Way } = {};

  for (const one of CASES) {
    test(one.name, { timeout: 20_000 }, async () => {
      if (!isUsable(ways.direct)) ways.direct = await openDirect();
      if (!isUsable(ways.through)) ways.through = await openThrough();
      const direct = await transcribe(one, "/chat?a=b", ways.direct);
      const [secretsBefore, before] = [secrets, gate.records.length];
      const through = await transcribe(one, "/chat?a=b", ways.through);
      assert.equal(secrets, secretsBefore + 1, "the secret was injected");
      assert.deepEqual(through, direct);
      assert.match(direct.client.at(-1) ?? "", /^close/);
      const { protocol, status, failure, bytes_out, bytes_in } = await gate.recordAt(before);
      assert.deepEqual([protocol, status, failure], ["ws", one.status ?? 200, one.failure ?? null]);
      assert.deepEqual([bytes_out, bytes_in], through.bytes);
      assert.equal(gate.records.length, before + 1, "one record");
    });
  }
});

test("several WebSockets and ordinary requests share one connection, and each has its own record", async () => {
  const conversations = async (way: Way) =>
    await Promise.all([
      ...CASES.slice(0, 2 * SIZES.length).map((one, at) => transcribe(one, `/chat/${at}`, way)),
      ...Array.from({ length: 10 }, (_, at) => get(way, `/plain/${at}`)),
    ]);
  const direct = await conversations(await openDirect());
  const through = await openThrough();
  const before = gate.records.length;
  assert.deepEqual(await conversations(through), direct);
  const count = direct.length;
  await gate.recordAt(before + count - 1);
  const records = gate.records.slice(before);
  assert.equal(records.length, count);
  assert.equal(records.filter(({ protocol }) => protocol === "ws").length, 2 * SIZES.length);
  const longest = records.find(({ path }) => path === `/chat/${2 * SIZES.length - 1}`);
  // A head of 14 bytes and a close of 8 out; 10 and 4 back.
  assert.deepEqual([longest?.["bytes_out"], longest?.["bytes_in"]], [1_048_576 + 22, 1_048_576 + 14]);
});

function serve(stream: ServerHttp2Stream, _headers: unknown, pairs: readonly string[]): void {
  const path = valueIn(pairs, ":path");
  const now = running.get(path);
  if (now === undefined) {
    stream.respond({ ":status": 200, "content-type": "text/plain" }, { sendDate: false } as object);
    stream.end(`You asked for ${path}`);
    return;
  }
  if (valueIn(pairs, "x-key") === internet.canary.secret) secrets += 1;
  const side = sideOf(stream, false);
  now.begun(without(pairs, "x-key"), side);
  const { one } = now;
  if (one.late === true) stream.once("data", () => respond(stream, side, one));
  else respond(stream, side, one);
}

function respond(stream: ServerHttp2Stream, side: Side, one: WsCase): void {
  if (one.hints === true) stream.additionalHeaders({ ":status": 103, link: "</a>; rel=preload" });
  const { status = 200, says = [], whole } = one;
  const head = [":status", String(status), ...says] as unknown as OutgoingHttpHeaders;
  stream.respond(
    head,
    Object.assign({ endStream: whole?.answer === true, waitForTrailers: true }, { sendDate: false }),
  );
  void (one.origin ?? echo)(side);
}

async function transcribe(one: WsCase, path: string, way: Way): Promise<Transcript> {
  const { session } = way;
  const begun = new Promise<{ asked: readonly string[]; origin: Side }>((resolve) => {
    running.set(path, { one, begun: (asked, origin) => resolve({ asked, origin }) });
  });
  const pseudo = [":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":authority", HOST];
  const pairs = [...pseudo, ":path", path, "sec-websocket-version", "13", ...(one.asks ?? [])];
  const stream: ClientHttp2Stream = session.request(pairs, {
    endStream: one.whole?.request === true,
    waitForTrailers: true,
  });
  const informed: string[][] = [];
  let head: readonly string[] = [];
  stream.on("headers", (_headers, _flags, raw) => void informed.push(raw));
  stream.on("response", (_headers, _flags, raw) => {
    head = raw;
  });
  const client = sideOf(stream, true);
  if (one.late !== true) await once(stream, "response");
  await one.client(client);
  if (one.cut === "client") way.cut();
  const { asked, origin } = await begun;
  await Promise.all([client.closed, origin.closed]);
  running.delete(path);
  const seen = (side: Side) => (one.cut !== undefined ? side.heard.map(codeless) : side.heard);
  const bytes = [origin.received, client.received];
  return { informed, head, client: seen(client), asked, origin: seen(origin), bytes };
}

async function get({ session }: Way, path: string) {
  const pairs = [":method", "GET", ":scheme", "https", ":authority", HOST, ":path", path];
  const stream = session.request(pairs, { endStream: true });
  stream.on("error", () => undefined);
  return await answerOf(stream);
}

async function openDirect(): Promise<Way> {
  const raw = await internet.gate.connect(PUBLIC_V4, 443);
  internet.onClose(() => raw.destroy());
  // Dialled half-open; but a peer that ends its side of HTTP/2 has ended all of it.
  raw.allowHalfOpen = false;
  const options = { socket: raw, servername: HOST, ca: internet.authority.certPem, ALPNProtocols: ["h2"] };
  return await wayOver(startTls(options), () => raw.resetAndDestroy());
}

async function openThrough(): Promise<Way> {
  const wire = await openWire(internet, gate, HOST, ["h2"]);
  wire.socket.removeAllListeners("data");
  return await wayOver(wire.socket, () => wire.reset());
}

async function wayOver(socket: TLSSocket, cut: () => void): Promise<Way> {
  const session = connect(`https://${HOST}`, { createConnection: () => socket });
  session.on("error", () => undefined);
  internet.onClose(() => session.destroy());
  session.setMaxListeners(0);
  if (session.remoteSettings.enableConnectProtocol !== true) await once(session, "remoteSettings");
  return { session, cut };
}

function isUsable(way: Way | undefined): way is Way {
  return way !== undefined && !way.session.closed && !way.session.destroyed;
}

function codeless(heard: string): string {
  return heard.startsWith("close") ? "close" : heard;
}

function valueIn(pairs: readonly string[], name: string): string {
  return pairs[pairs.findIndex((pair, at) => at % 2 === 0 && pair === name) + 1] ?? "";
}

function without(pairs: readonly string[], name: string): readonly string[] {
  return pairs.filter((_, at) => pairs[at - (at % 2)] !== name);
}
