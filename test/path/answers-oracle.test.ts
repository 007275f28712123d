/** The transparency oracle for answers: status, fields, body and trailers are those that a client gets without the gate. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "node:tls";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { readMessage, statusOf } from "../support/message-reader.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

interface Case {
  readonly name: string;
  readonly answer: string;
  /** Default: GET. */
  readonly method?: string;
  /** The origin ends after it. */
  readonly close?: boolean;
  /** Of this the lines alone that the gate drops on purpose, which it has to. */
  readonly dropped?: readonly string[];
  /** The gate frames the body anew, so its framing is not compared, but all else. */
  readonly framed?: boolean;
}

const HOST = "answers.example.com";
const STATUSES = Array.from({ length: 400 }, (_, index) => 200 + index);
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];
const FRAMING = /^(?:content-length|transfer-encoding|connection): /i;
const CHUNKED = "4;ext=1\r\nabcd\r\n3\r\nefg\r\n0\r\n";

const CASES: readonly Case[] = [
  {
    name: "order, case and repetition of fields",
    answer: respond("x", "200 OK", ["B: 1", "a: 2", "X-LONG-Name: 3", "b: 4", "A: 5"]),
  },
  {
    name: "empty values and inner blanks",
    answer: respond("x", "200 OK", ["X-Empty:", "X-Blanks: a  b\tc"]),
  },
  { name: "a value of 8,000 bytes", answer: respond("x", "200 OK", [`X-Long: ${"v".repeat(8_000)}`]) },
  {
    name: "100 fields",
    answer: respond(
      "x",
      "200 OK",
      Array.from({ length: 100 }, (_, at) => `X-${at}: ${at}`),
    ),
  },
  { name: "latin-1 values", answer: respond("x", "200 OK", ["X-Name: caf\xe9 \xff"]) },
  { name: "names of odd characters", answer: respond("x", "200 OK", ["x!#$%&'*+-.^_`|~9: 1"]) },
  {
    name: "several Set-Cookie",
    answer: respond("x", "200 OK", ["Set-Cookie: a=1; Path=/", "Set-Cookie: b=2, c", "Set-Cookie: a=3"]),
  },
  { name: "a phrase of one's own", answer: respond("x", "299 Quite (all) right") },
  { name: "an empty phrase", answer: respond("x", "200 ") },
  { name: "an empty body", answer: respond("") },
  { name: "a body of 1 MiB", answer: respond("y".repeat(1_048_576)) },
  {
    name: "a body of every byte",
    answer: head("HTTP/1.1 200 OK", "Content-Length: 256") + String.fromCharCode(...Array(256).keys()),
  },
  {
    name: "a chunked body",
    answer: `${head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")}${CHUNKED}\r\n`,
  },
  {
    name: "trailers",
    answer: `${head("HTTP/1.1 200 OK", "Trailer: X-Sum", "Transfer-Encoding: chunked")}${CHUNKED}X-Sum: 1\r\nx-other: 2\r\n\r\n`,
  },
  {
    name: "a body until the close",
    answer: `${head("HTTP/1.1 200 OK", "Connection: close")}until the close`,
    close: true,
    framed: true,
  },
  {
    name: "an answer of HTTP/1.0",
    answer: `${head("HTTP/1.0 200 OK", "X-Old: 1")}old`,
    close: true,
    framed: true,
  },
  { name: "204", answer: head("HTTP/1.1 204 No Content", "X-None: 1") },
  {
    name: "304 with a length and a tag",
    answer: head("HTTP/1.1 304 Not Modified", "Content-Length: 12", 'ETag: "a"'),
  },
  { name: "206", answer: respond("bcd", "206 Partial Content", ["Content-Range: bytes 1-3/7"]) },
  {
    name: "103, then 200",
    answer: `${head("HTTP/1.1 103 Early Hints", "Link: </a>; rel=preload")}${respond("x")}`,
  },
  {
    name: "401 with two challenges",
    answer: respond("x", "401 Unauthorized", [
      'WWW-Authenticate: Basic realm="a"',
      "WWW-Authenticate: Bearer",
    ]),
  },
  {
    name: "fields of the hop, which are dropped",
    answer: respond("x", "200 OK", ["Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5", "X-Stays: 1"]),
    dropped: ["X-Hop: 1", "Keep-Alive: timeout=5"],
  },
  {
    name: "Alt-Svc, which is dropped",
    answer: respond("x", "200 OK", ['Alt-Svc: h3=":443"', "Server: one"]),
    dropped: ['Alt-Svc: h3=":443"'],
  },
  ...METHODS.map((method) => ({
    name: method,
    method,
    answer: method === "HEAD" ? head("HTTP/1.1 200 OK", "Content-Length: 7") : respond("seven b"),
  })),
];

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: [HOST], bound: true, answer: answerTo });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { "X-Key": SECRET } }] },
  });
});
after(() => internet.close());

describe("an answer is the same direct and through the gate:", () => {
  for (const [index, one] of CASES.entries()) {
    test(one.name, async () => {
      const request = head(`${one.method ?? "GET"} /case/${index} HTTP/1.1`, `Host: ${HOST}`);
      const [direct, through] = [await ask(request, one, "direct"), await ask(request, one, "through")];
      for (const line of one.dropped ?? []) assert.ok(direct.includes(line), line);
      const expected = direct.filter((line) => !(one.dropped ?? []).includes(line));
      const compared = (lines: readonly string[]) =>
        one.framed === true || one.dropped !== undefined
          ? lines.filter((line) => !FRAMING.test(line))
          : lines;
      const minor = (lines: readonly string[]) =>
        lines.map((line) => line.replace(/^HTTP\/1\.0 /, "HTTP/1.1 "));
      assert.deepEqual(compared(through), compared(minor(expected)));
    });
  }

  test("each status from 200 to 599", async () => {
    const seen: number[] = [];
    const wire = await inside(internet, gate, HOST);
    for (const status of STATUSES) {
      wire.write(head(`GET /status/${status} HTTP/1.1`, `Host: ${HOST}`));
      const bodiless = status === 204 || status === 304;
      const answer = await wire.response({ bodiless });
      assert.equal(answer.start, `HTTP/1.1 ${status} Status ${status}`);
      assert.equal(answer.body, bodiless ? "" : "s");
      seen.push(statusOf(answer));
    }
    assert.deepEqual(seen, STATUSES);
  });
});

function answerTo(
  { start }: Message,
  { socket }: { readonly socket: { end(bytes: Buffer): unknown } },
): string | undefined {
  const [, kind, number] = /\/(case|status)\/(\d+) /.exec(start) ?? [];
  if (kind === "status") {
    const bodiless = number === "204" || number === "304";
    return bodiless
      ? head(`HTTP/1.1 ${number} Status ${number}`)
      : respond("s", `${number} Status ${number}`);
  }
  const { answer = "", close = false } = CASES[Number(number)] ?? {};
  if (!close) return answer;
  socket.end(Buffer.from(answer, "latin1"));
  return undefined;
}

async function ask(request: string, one: Case, way: "direct" | "through"): Promise<readonly string[]> {
  const { bytes, ended } = way === "through" ? await throughGate(request, one) : await direct(request, one);
  return linesOf(bytes, ended, one.method ?? "GET");
}

interface Received {
  readonly bytes: string;
  readonly ended: boolean;
}

async function throughGate(request: string, one: Case): Promise<Received> {
  const wire = await inside(internet, gate, HOST);
  wire.write(request);
  await wire.until("the whole answer", (text) => wire.ending !== undefined || isWhole(text, one));
  wire.destroy();
  return { bytes: wire.received, ended: wire.ending !== undefined };
}

async function direct(request: string, one: Case): Promise<Received> {
  const socket = await internet.gate.connect(PUBLIC_V4, 443);
  internet.onClose(() => socket.destroy());
  const tls = connect({ socket, servername: HOST, ca: internet.authority.certPem });
  return await new Promise((resolve, reject) => {
    let bytes = "";
    tls.on("error", reject);
    tls.on("data", (piece: Buffer) => {
      bytes += piece.toString("latin1");
      if (one.close !== true && isWhole(bytes, one)) finish(false);
    });
    tls.on("end", () => finish(true));
    tls.write(request);
    function finish(ended: boolean): void {
      resolve({ bytes, ended });
      socket.destroy();
    }
  });
}

/** An interim head is not the answer. */
function isWhole(text: string, { method }: Case): boolean {
  for (let rest = text; ; ) {
    const read = readMessage(rest, { role: "response", bodiless: method === "HEAD" });
    if (read === undefined || statusOf(read.message) >= 200) return read !== undefined;
    rest = rest.slice(read.size);
  }
}

/** Of all heads, bodies and trailers, in order. */
function linesOf(text: string, ended: boolean, method: string): readonly string[] {
  const lines: string[] = [];
  for (let rest = text; rest.length > 0; ) {
    const read = readMessage(rest, { role: "response", ended, bodiless: method === "HEAD" });
    if (read === undefined) return [...lines, "CUT", rest];
    rest = rest.slice(read.size);
    const { start, fields, body, trailers, complete } = read.message;
    const written = [...fields, ...trailers].map(([name, value]) => `${name}: ${value}`);
    lines.push(start, ...written, body, `complete: ${complete}`);
  }
  return lines;
}
