/** The transparency oracle for WebSockets: each case makes the same transcript on both sides, direct and through the gate. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { type ConnectionOptions, connect as startTls, TLSSocket } from "node:tls";
import type { WebSocket as Socket } from "ws";
import { WebSocket, WebSocketServer } from "ws";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { dialThrough } from "../support/wire-client.ts";

/** What a case does; both functions may write to the peer as they like. */
interface Case {
  readonly name: string;
  readonly client: (socket: Socket) => void;
  /** Default: echoes messages. */
  readonly server?: (socket: Socket) => void;
  readonly deflate?: boolean;
  readonly protocols?: readonly string[];
}

const HOST = "ws.example.com";
const MIB = 1_048_576;
const SIZES = [0, 1, 125, 126, 127, 65_535, 65_536, MIB, MIB + 1];
const CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];

const CASES: readonly Case[] = [
  ...SIZES.flatMap((size) => [
    sends(`a text of ${size} bytes`, (socket) => socket.send("t".repeat(size))),
    sends(`${size} binary bytes`, (socket) => socket.send(Buffer.alloc(size, 7))),
  ]),
  { ...sends("a compressed text of 1 MiB", (socket) => socket.send("abc".repeat(MIB / 3))), deflate: true },
  { ...sends("compressed bytes", (socket) => socket.send(Buffer.alloc(100_000, 3))), deflate: true },
  sends("fragments", (socket) => {
    for (const [piece, fin] of [
      ["a", false],
      ["", false],
      ["b", false],
      ["c", true],
    ] as const)
      socket.send(piece, { fin });
  }),
  sends("fragments with a ping between them", (socket) => {
    socket.send("a", { fin: false });
    socket.ping("between");
    socket.send("b", { fin: true });
  }),
  sends("text beyond ASCII", (socket) => socket.send("ü€😀\u0000")),
  {
    name: "1,000 messages",
    client(socket) {
      for (let at = 0; at < 1_000; at += 1) socket.send(`message ${at}`);
      let left = 1_000;
      socket.on("message", () => {
        left -= 1;
        if (left === 0) socket.close();
      });
    },
  },
  {
    name: "pings of 0 and 125 bytes, and their pongs",
    client(socket) {
      socket.ping();
      socket.ping("p".repeat(125));
      let left = 2;
      socket.on("pong", () => {
        left -= 1;
        if (left === 0) socket.close();
      });
    },
  },
  {
    name: "an unasked pong",
    client: closesAtMessage,
    server: (socket) => {
      socket.pong("unasked");
      socket.send("go");
    },
  },
  {
    name: "the server's ping",
    client: () => undefined,
    server(socket) {
      socket.ping("are you there");
      socket.on("pong", () => socket.close(1001, "good"));
    },
  },
  { name: "the server's first word", client: closesAtMessage, server: (socket) => socket.send("early") },
  {
    name: "many early words",
    client: (socket) =>
      void socket.on("message", (bytes) => {
        if (String(bytes) === "99") socket.close();
      }),
    server: (socket) => {
      for (let at = 0; at < 100; at += 1) socket.send(String(at));
    },
  },
  ...CODES.flatMap((code) => [
    { name: `the client's close ${code}`, client: (socket: Socket) => socket.close(code, `reason ${code}`) },
    {
      name: `the server's close ${code}`,
      client: () => undefined,
      server: (socket: Socket) => socket.close(code, "ü".repeat(61)),
    },
  ]),
  { name: "a close without a code", client: (socket) => socket.close() },
  { name: "a subprotocol", client: (socket) => socket.close(), protocols: ["a", "b"] },
  { name: "an abrupt end by the client", client: (socket) => socket.terminate() },
  { name: "an abrupt end by the server", client: () => undefined, server: (socket) => socket.terminate() },
  raw("a half-close by the server", "server", ""),
  raw("a frame with a reserved opcode", "client", "83 80 00 00 00 00"),
  raw("a frame with a reserved bit", "client", "c1 80 00 00 00 00"),
  raw("a client's frame without a mask", "client", "81 01 61"),
  raw("a server's frame with a mask", "server", "81 81 00 00 00 00 61"),
  raw("a ping of 126 bytes", "client", `89 fe 00 7e 00 00 00 00 ${"61 ".repeat(126)}`),
  raw("a ping in fragments", "client", "09 80 00 00 00 00"),
  raw("a continuation of nothing", "client", "80 80 00 00 00 00"),
  raw("text that is no UTF-8", "client", "81 81 00 00 00 00 ff"),
  raw("text of the server that is no UTF-8", "server", "81 01 ff"),
  raw("a close with one byte", "client", "88 81 00 00 00 00 03"),
  raw("a close code that may not be sent", "server", "88 02 03 ed"),
  raw("a length beyond 2^53", "client", "82 ff ff ff ff ff ff ff ff ff 00 00 00 00"),
];

let internet: Internet;
let gate: Gate;
let current: {
  readonly server: (socket: Socket) => void;
  readonly transcript: string[];
  readonly over: () => void;
};
let requests = 0;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  for (const deflate of [false, true]) await serve(deflate);
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, ports: [443, 8443], transform: { "X-Key": SECRET } }] },
  });
});
after(() => internet.close());

describe("a WebSocket's transcript is the same direct and through the gate:", () => {
  for (const one of CASES) {
    test(one.name, async () => {
      const direct = await transcribe(one, "direct");
      const before = requests;
      const through = await transcribe(one, "through");
      assert.equal(requests, before + 1, "the secret was injected");
      assert.deepEqual(through, direct);
      assert.ok(direct.length >= 2, String(direct));
    });
  }
});

async function serve(deflate: boolean): Promise<void> {
  const listener = await internet.net.listen(PUBLIC_V4, deflate ? 8443 : 443);
  const secureContext = internet.authority.context(HOST);
  const server = createServer();
  const sockets = new WebSocketServer({
    server,
    perMessageDeflate: deflate,
    handleProtocols: (offered) => [...offered].at(-1) ?? false,
  });
  sockets.on("connection", (socket, request) => {
    if (request.headers["x-key"] === internet.canary.secret) requests += 1;
    const { server: act, transcript, over } = current;
    note(socket, transcript);
    socket.on("close", over);
    act(socket);
  });
  listener.on("connection", (raw) => {
    raw.on("error", () => undefined);
    const tls = new TLSSocket(raw, { isServer: true, secureContext });
    tls.on("error", () => undefined);
    server.emit("connection", tls);
  });
  internet.onClose(() => listener.close());
}

async function transcribe(one: Case, way: "direct" | "through"): Promise<readonly string[]> {
  const transcripts: { client: string[]; server: string[] } = { client: [], server: [] };
  const ended = new Promise<void>((resolve) => {
    current = { server: one.server ?? echo, transcript: transcripts.server, over: resolve };
  });
  const port = one.deflate === true ? 8443 : 443;
  const transport = await transportOf(way, port);
  const client = new WebSocket(`wss://${HOST}:${port}/`, [...(one.protocols ?? [])], {
    createConnection: () => transport,
    perMessageDeflate: one.deflate === true,
  });
  note(client, transcripts.client);
  client.on("open", () => {
    transcripts.client.push(`open ${client.protocol} ${client.extensions}`);
    one.client(client);
  });
  const closed = new Promise<void>((resolve) => void client.on("close", () => resolve()));
  await Promise.all([closed, ended]);
  transport.destroy();
  return [...transcripts.client, "--", ...transcripts.server];
}

async function transportOf(way: "direct" | "through", port: number): Promise<TLSSocket> {
  if (way === "through") {
    const wire = await dialThrough(internet, `${HOST}:${port}`, { ca: gate.ca });
    wire.socket.removeAllListeners("data");
    return wire.socket;
  }
  const raw = await internet.gate.connect(PUBLIC_V4, port);
  internet.onClose(() => raw.destroy());
  const options: ConnectionOptions = { socket: raw, servername: HOST, ca: internet.authority.certPem };
  return await new Promise((resolve, reject) => {
    const tls = startTls(options, () => resolve(tls));
    tls.on("error", reject);
  });
}

/** Everything that an application hears, in order; long messages by their digest. */
function note(socket: Socket, transcript: string[]): void {
  socket.on("message", (bytes: Buffer, binary) => {
    transcript.push(
      `message ${binary} ${bytes.length} ${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}`,
    );
  });
  socket.on("ping", (bytes) => transcript.push(`ping ${bytes}`));
  socket.on("pong", (bytes) => transcript.push(`pong ${bytes}`));
  socket.on("error", (error: NodeJS.ErrnoException) => transcript.push(`error ${error.code}`));
  socket.on("close", (code, reason) => transcript.push(`close ${code} ${reason}`));
}

function echo(socket: Socket): void {
  socket.on("message", (bytes: Buffer, binary) => socket.send(bytes, { binary }));
}

function closesAtMessage(socket: Socket): void {
  socket.on("message", () => socket.close());
}

/** Says something, and closes when it came back. */
function sends(name: string, say: (socket: Socket) => void): Case {
  return {
    name,
    client(socket) {
      closesAtMessage(socket);
      say(socket);
    },
  };
}

/** Bytes that no library would send, and then the end of that side. */
function raw(name: string, side: "client" | "server", hex: string): Case {
  const write = (socket: Socket): void => {
    const { _socket: transport } = socket as Socket & { readonly _socket: TLSSocket };
    transport.end(Buffer.from(hex.replaceAll(" ", ""), "hex"));
  };
  if (side === "client") return { name, client: write };
  return { name, client: () => undefined, server: write };
}
