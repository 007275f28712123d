/** The transparency oracle for HTTP/2: heads, bodies, trailers and interim answers, and what the origin is asked, are the same direct and through the gate. */
import assert from "node:assert/strict";
import {
  type ClientHttp2Session,
  connect,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  type ServerStreamResponseOptions,
} from "node:http2";
import { after, before, describe, test } from "node:test";
import { connect as startTls } from "node:tls";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { answerOf, openH2 } from "../support/h2-client.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

interface Case {
  readonly name: string;
  /** Pairs beside the pseudo fields. */
  readonly asks?: readonly string[];
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly requestTrailers?: OutgoingHttpHeaders;
  readonly interim?: readonly OutgoingHttpHeaders[];
  readonly status?: number;
  /** Pairs of the answer. */
  readonly says?: readonly string[];
  /** Pieces; absent: END_STREAM with the head. */
  readonly pieces?: readonly string[];
  readonly trailers?: OutgoingHttpHeaders;
  /** Names that the gate drops on purpose, which it has to. */
  readonly dropped?: readonly string[];
}

const HOST = "answers.example.com";
const STATUSES = Array.from({ length: 400 }, (_, index) => 200 + index);
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"];

const CASES: readonly Case[] = [
  { name: "order and repetition of fields", says: ["b", "1", "a", "2", "b", "3", "x-long-name", "4"] },
  { name: "empty values and inner blanks", says: ["x-empty", "", "x-blanks", "a  b\tc"], pieces: ["x"] },
  { name: "a value of 8,000 bytes", says: ["x-long", "v".repeat(8_000)] },
  { name: "100 fields", says: Array.from({ length: 100 }, (_, at) => [`x-${at}`, String(at)]).flat() },
  { name: "names of odd characters", says: ["x!#$%&'*+-.^_`|~9", "1"] },
  {
    name: "several Set-Cookie",
    says: ["set-cookie", "a=1; Path=/", "set-cookie", "b=2, c", "set-cookie", "a=3"],
  },
  { name: "an end with the head" },
  { name: "a body of no bytes", pieces: [] },
  { name: "a body with a length", says: ["content-length", "7"], pieces: ["seven ", "b"] },
  { name: "a body without one", pieces: ["seven ", "b"] },
  { name: "a length of nought", says: ["content-length", "0"] },
  { name: "a body of 1 MiB", pieces: ["y".repeat(1_048_576)] },
  { name: "a body of every byte", pieces: [String.fromCharCode(...Array(256).keys())] },
  { name: "trailers", pieces: ["body"], trailers: { "x-sum": "1", "x-other": ["2", "3"] } },
  {
    name: "trailers after a length",
    says: ["content-length", "4"],
    pieces: ["body"],
    trailers: { "x-sum": "" },
  },
  { name: "trailers and no body", pieces: [], trailers: { "grpc-status": "0" } },
  { name: "103, then 200", interim: [{ ":status": 103, link: "</a>; rel=preload" }], pieces: ["x"] },
  {
    name: "two of 103",
    interim: [
      { ":status": 103, link: ["</a>", "</b>"] },
      { ":status": 103, "x-more": "1" },
    ],
    pieces: ["x"],
  },
  { name: "204", status: 204, says: ["x-none", "1"] },
  { name: "304 with a length and a tag", status: 304, says: ["content-length", "12", "etag", '"a"'] },
  { name: "206", status: 206, says: ["content-range", "bytes 1-3/7"], pieces: ["bcd"] },
  {
    name: "401 with two challenges",
    status: 401,
    says: ["www-authenticate", 'Basic realm="a"', "www-authenticate", "Bearer"],
  },
  {
    name: "Alt-Svc, which is dropped",
    says: ["alt-svc", 'h3=":443"', "server", "one"],
    dropped: ["alt-svc"],
  },
  { name: "cookies in crumbs", asks: ["cookie", "a=1", "cookie", "b=2", "cookie", "c=3"] },
  { name: "repeated and empty request fields", asks: ["x-a", "", "x-b", "1", "x-a", "2", "te", "trailers"] },
  { name: "request names of odd characters", asks: ["x!#$%&'*+-.^_`|~9", "1", "priority", "u=1, i"] },
  { name: "a query with every sign", path: "/p;a=1/%2e/x?a=b&c=%00&d=[]{}|^`" },
  { name: "a request body with a length", method: "PUT", asks: ["content-length", "3"], body: "abc" },
  { name: "a request body without a length", method: "POST", body: "a".repeat(100_000), pieces: ["x"] },
  { name: "a GET with a body", body: "body" },
  {
    name: "request trailers",
    method: "POST",
    body: "body",
    requestTrailers: { "x-sum": "7", "x-other": "" },
    pieces: ["x"],
  },
  ...METHODS.map((method) => ({ name: method, method, says: ["content-length", "7"], pieces: ["seven b"] })),
];

let internet: Internet;
let gate: Gate;
let current: Case = { name: "" };
let asked: unknown[] = [];
let secrets = 0;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await createH2Origin(internet, {
    names: [HOST],
    bound: true,
    options: { strictSingleValueFields: false } as object,
    serve: (stream, _headers, pairs) => void serve(stream, pairs),
  });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { "X-Key": SECRET } }] },
  });
});
after(() => internet.close());

describe("question and answer are the same direct and through the gate:", () => {
  for (const one of CASES) {
    test(one.name, async () => {
      const direct = await converse(one, await openDirect());
      const before = secrets;
      const { session } = await openH2(internet, gate, HOST);
      const through = await converse(one, session);
      assert.equal(secrets, before + 1, "the secret was injected");
      const { dropped = [] } = one;
      for (const name of dropped) assert.ok(direct.answer.pairs.includes(name), name);
      const { pairs } = direct.answer;
      const kept = pairs.filter((_, at) => !dropped.includes(pairs[at - (at % 2)] ?? ""));
      assert.deepEqual(through, { ...direct, answer: { ...direct.answer, pairs: kept } });
    });
  }

  test("each status from 200 to 599", async () => {
    const [direct, { session }] = [await openDirect(), await openH2(internet, gate, HOST)];
    for (const status of STATUSES) {
      const bodiless = status === 204 || status === 304;
      const one = { name: "", status, ...(bodiless ? {} : { pieces: ["s"] }) };
      const expected = await converse(one, direct);
      assert.equal(expected.answer.status, status);
      assert.deepEqual(await converse(one, session), expected);
    }
  });
});

async function serve(stream: ServerHttp2Stream, pairs: readonly string[]): Promise<void> {
  const one = current;
  const heard: unknown[] = [withoutSecret(pairs)];
  asked = heard;
  const pieces: Buffer[] = [];
  stream.on("trailers", (_headers, _flags, raw: string[]) => void heard.push(raw));
  stream.on("data", (bytes: Buffer) => void pieces.push(bytes));
  stream.on("end", () => {
    heard.push(Buffer.concat(pieces).toString("latin1"));
    answer(stream, one);
  });
}

function answer(stream: ServerHttp2Stream, one: Case): void {
  const { interim = [], status = 200, says = [], pieces, trailers } = one;
  for (const headers of interim) stream.additionalHeaders(headers);
  const endStream = pieces === undefined || one.method === "HEAD";
  // An array keeps order and repetition; its first pair is the status.
  const head = [":status", String(status), ...says] as unknown as OutgoingHttpHeaders;
  const waitForTrailers = trailers !== undefined && !endStream;
  const options: ServerStreamResponseOptions = { endStream, waitForTrailers };
  // Its type does not know the option yet.
  stream.respond(head, Object.assign(options, { sendDate: false }));
  if (endStream) return;
  stream.on("wantTrailers", () => stream.sendTrailers(trailers ?? {}));
  for (const piece of pieces) stream.write(Buffer.from(piece, "latin1"));
  stream.end();
}

function withoutSecret(pairs: readonly string[]): readonly string[] {
  const at = pairs.findIndex((name, index) => index % 2 === 0 && name === "x-key");
  if (at < 0) return pairs;
  if (pairs[at + 1] === internet.canary.secret) secrets += 1;
  return pairs.filter((_, index) => index !== at && index !== at + 1);
}

async function openDirect(): Promise<ClientHttp2Session> {
  const raw = await internet.gate.connect(PUBLIC_V4, 443);
  const options = { socket: raw, servername: HOST, ca: internet.authority.certPem, ALPNProtocols: ["h2"] };
  const session = connect(`https://${HOST}`, { createConnection: () => startTls(options) });
  session.on("error", () => undefined);
  internet.onClose(() => session.destroy());
  return session;
}

async function converse(one: Case, session: ClientHttp2Session) {
  current = one;
  const { method = "GET", path = "/", asks = [], body, requestTrailers } = one;
  const pairs = [":method", method, ":scheme", "https", ":authority", HOST, ":path", path, ...asks];
  const options = { endStream: body === undefined, waitForTrailers: requestTrailers !== undefined };
  const stream = session.request(pairs, options);
  stream.on("error", () => undefined);
  stream.on("wantTrailers", () => stream.sendTrailers(requestTrailers ?? {}));
  if (body !== undefined) void stream.end(body);
  return { answer: await answerOf(stream), asked };
}
