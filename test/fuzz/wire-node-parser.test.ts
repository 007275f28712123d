/**
 * Differential: whatever the codec accepts, Node's own strict parser reads as the same message. Where Node accepts and
 * the codec does not, STRICTER says so; it was measured on Node 24.22.3.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, METHODS, request, type Server } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as TcpServer,
} from "node:net";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { damaged, validRequest, validResponse } from "./wire-messages.ts";
import { type Message, receive } from "./wire-receiver.ts";

/** What both sides can tell of a message. */
interface Seen {
  readonly start: readonly [string, string];
  readonly fields: readonly string[];
  readonly body: string;
}

const LONG_HEAD = 131_072;
/** Name, whether Node takes it, bytes. The codec refuses all. */
const STRICTER: readonly (readonly [string, string])[] = [
  ["E14 HTTP/0.9", "GET /\r\n\r\n"],
  ["D10 two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
  ["D10 userinfo in Host", "GET / HTTP/1.1\r\nHost: good.example@evil.example\r\n\r\n"],
  ["D10 two words in Host", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"],
  ["D10 list in Host", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"],
  ["D10 empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"],
  ["E05 gzip, chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
  ["E06 TE on HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["E17 CONNECT with a length", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"],
  ["F01 nominated Host", "GET / HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n"],
  ["two empty lines before the request", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"],
];

let origin: Server;
let raw: TcpServer;
/** The next message that the origin sees. */
let arrived: (seen: Seen | "refused") => void = () => {};
/** What the raw server answers next. */
let answer = "";

before(async () => {
  origin = createServer({ maxHeaderSize: LONG_HEAD, keepAliveTimeout: 0 }, (message, reply) => {
    collect(message).then((body) => {
      arrived({ start: [String(message.method), String(message.url)], fields: lines(message), body });
      reply.end();
    }, ignore);
  });
  origin.on("connect", (message: IncomingMessage, socket) => {
    arrived({ start: ["CONNECT", String(message.url)], fields: lines(message), body: "" });
    socket.end();
  });
  origin.on("clientError", (_, socket) => {
    arrived("refused");
    socket.destroy();
  });
  raw = createTcpServer((socket) => {
    socket.on("error", ignore);
    socket.once("data", () => socket.end(answer, "latin1"));
  });
  for (const server of [origin, raw]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
});

after(() => {
  origin.closeAllConnections();
  origin.close();
  raw.close();
});

/** Sends bytes to Node's server and half-closes; the first message that it makes of them. */
async function askNode(text: string): Promise<Seen | "refused"> {
  const { port } = origin.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", ignore);
  const seen = new Promise<Seen | "refused">((resolve) => {
    arrived = resolve;
    socket.on("close", () => resolve("refused"));
  });
  socket.end(text, "latin1");
  socket.resume();
  const result = await seen;
  socket.destroy();
  return result;
}

/** Has Node's client read bytes as the answer to a GET. */
function tellNode(text: string): Promise<Seen | "refused"> {
  answer = text;
  const { port } = raw.address() as AddressInfo;
  return new Promise((resolve) => {
    const refused = () => resolve("refused");
    const asked = request({ port, host: "127.0.0.1", agent: false, maxHeaderSize: LONG_HEAD }, (message) => {
      const start = [String(message.statusCode), String(message.statusMessage)] as const;
      collect(message).then((body) => resolve({ start, fields: lines(message), body }), refused);
    });
    asked.on("error", refused);
    asked.end();
  });
}

for (const [side, valid, node] of [
  ["client", validRequest, askNode],
  ["upstream", validResponse, tellNode],
] as const) {
  test(`Node reads every message of the ${side} that receive() accepts, and reads it alike`, async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(valid, damaged(valid), damaged(valid)), async (text) => {
        const [message] = accepted(side, text);
        if (message !== undefined && !isMilder(message, text)) {
          compared += 1;
          assert.deepEqual(await node(text), seenBy(message));
        }
      }),
      { numRuns: 400 },
    );
    assert.ok(compared > 80, `only ${compared} were accepted`);
  });
}

for (const [name, text] of STRICTER) {
  test(`receive() is stricter than Node: ${name}`, async (t) => {
    assert.deepEqual(accepted("client", text), []);
    const node = await askNode(text);
    t.diagnostic(`Node ${node === "refused" ? "refuses it as well" : "accepts it"}`);
  });
}

/** What Node refuses and the codec takes: methods of nobody's list, and framing fields as trailers, which it drops. */
function isMilder({ start, framing }: Message, text: string): boolean {
  const body = text.slice(text.indexOf("\r\n\r\n", 2));
  return (
    (!/^[1-5][0-9][0-9]$/.test(start[0]) && !METHODS.includes(start[0])) ||
    // RFC 3986 section 3.1 lets a scheme have digits; Node knows letters alone, and the gate `http` and `https`.
    /^[A-Za-z]+[0-9+.-][A-Za-z0-9+.-]*:/.test(start[1]) ||
    (framing.kind === "chunked" && /\r\n(?:content-length|transfer-encoding):/i.test(body))
  );
}

/** Exactly one message, or none. */
function accepted(side: "client" | "upstream", text: string): Message[] {
  try {
    const messages = receive(side, [Buffer.from(text, "latin1")]);
    return messages.length === 1 ? messages : [];
  } catch {
    return [];
  }
}

function seenBy({ start, fields, body }: Message): Seen {
  return { start, fields: fields.map(({ name, value }) => `${name}: ${value}`), body };
}

function lines(message: IncomingMessage): string[] {
  const read: string[] = [];
  for (let at = 0; at < message.rawHeaders.length; at += 2) {
    read.push(`${message.rawHeaders[at]}: ${message.rawHeaders[at + 1]}`);
  }
  return read;
}

async function collect(message: IncomingMessage): Promise<string> {
  let body = "";
  message.setEncoding("latin1");
  for await (const piece of message) {
    body += piece;
  }
  return body;
}

function ignore(): void {}
