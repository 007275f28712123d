/** The load generator: runs in the gate's namespace, keeps so many clients busy when asked, and prints what it counted. */
import { readFileSync } from "node:fs";
import { type OutgoingHttpHeaders, connect as startH2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { createSecureContext, connect as startTls } from "node:tls";
import { cpuSeconds, memoryBytes } from "./process-tree.ts";

/** The one argument, as JSON. Then each line of input is a window to measure, in milliseconds; 0 ends it. */
export interface LoadOptions {
  /** The proxy, on 127.0.0.1. */
  readonly port: number;
  readonly host: string;
  readonly path: string;
  readonly connections: number;
  readonly fresh: boolean;
  /** HTTP/2, with so many requests under way on each connection. */
  readonly streams?: number | undefined;
  /** PEM of whoever signs what the clients see. */
  readonly caFile: string;
  /** The contender's first process. */
  readonly pid: number;
}

/** One line of output for each window, as JSON. */
export interface LoadResult {
  /** Answers with status 200 within the window; nothing else counts as a request. */
  readonly requests: number;
  /** Since the window before. */
  readonly errors: number;
  readonly firstError: string | undefined;
  /** Length of the window. */
  readonly seconds: number;
  /** What the contender's process tree used within the window. */
  readonly cpuSeconds: number;
  /** What it held at the window's end. */
  readonly memoryBytes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const HEAD_END = "\r\n\r\n";
const REOPEN_MS = 50;
/** From the word to go until all clients are busy. */
const SETTLE_MS = 150;

const options: LoadOptions = JSON.parse(process.argv[2] ?? "");
const secureContext = createSecureContext({ ca: readFileSync(options.caFile) });
const connectHead = `CONNECT ${options.host}:443 HTTP/1.1\r\nHost: ${options.host}:443${HEAD_END}`;
/** What an agent's HTTP client sends; its own Authorization is to be replaced. */
const request = Buffer.from(
  [
    `GET ${options.path} HTTP/1.1`,
    `Host: ${options.host}`,
    "User-Agent: bench/1",
    "Accept: application/json, */*;q=0.5",
    "Accept-Language: en",
    "Authorization: Bearer placeholder",
    "X-Request-Id: 7c0f3f1e-9f6b-4a3e-8a51-0d6a3b0c9b11",
  ].join("\r\n") + HEAD_END,
  "latin1",
);

/** The same in HTTP/2. */
const headers: OutgoingHttpHeaders = {
  ":method": "GET",
  ":path": options.path,
  ":scheme": "https",
  ":authority": options.host,
  "user-agent": "bench/1",
  accept: "application/json, */*;q=0.5",
  "accept-language": "en",
  authorization: "Bearer placeholder",
  "x-request-id": "7c0f3f1e-9f6b-4a3e-8a51-0d6a3b0c9b11",
};

/** Clients that wait for the word to go on. */
let parked: (() => void)[] = Array.from({ length: options.connections }, () => open);
let running = false;
let measuring = false;
let requests = 0;
let errors = 0;
let firstError: string | undefined;
let latencies: number[] = [];

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "0") process.exit();
  process.stdout.write(`${JSON.stringify(await measure(Number(line)))}\n`);
}

async function measure(ms: number): Promise<LoadResult> {
  running = true;
  const resumed = parked;
  parked = [];
  for (const go of resumed) go();
  await delay(SETTLE_MS);
  [requests, latencies, measuring] = [0, [], true];
  const started = performance.now();
  const before = cpuSeconds(options.pid);
  await delay(ms);
  const used = cpuSeconds(options.pid) - before;
  const seconds = (performance.now() - started) / 1000;
  [measuring, running] = [false, false];
  const sorted = Float64Array.from(latencies).sort();
  const [p50Ms = 0, p99Ms = 0] = [0.5, 0.99].map((share) => sorted[Math.floor(sorted.length * share)] ?? 0);
  const memory = memoryBytes(options.pid);
  const result = {
    requests,
    errors,
    firstError,
    seconds,
    cpuSeconds: used,
    memoryBytes: memory,
    p50Ms,
    p99Ms,
  };
  [errors, firstError] = [0, undefined];
  return result;
}

/** One client: a CONNECT, a handshake, then one request after the other. */
function open(): void {
  const started = performance.now();
  const socket = connect({ host: "127.0.0.1", port: options.port, noDelay: true });
  let over = false;
  socket.on("error", (error) => fail(error.message));
  socket.once("connect", () => socket.write(connectHead));
  socket.once("data", (answer: Buffer) => {
    const text = answer.toString("latin1");
    if (!/^HTTP\/1\.[01] 200 /.test(text) || !text.endsWith(HEAD_END)) fail(text.split("\r\n")[0] ?? "");
    else if (options.streams === undefined) secure(socket, started, fail);
    else multiplex(socket, options.streams, fail);
  });

  function fail(why: string): void {
    if (over) return;
    over = true;
    errors += 1;
    firstError ??= why;
    socket.destroy();
    setTimeout(() => whenRunning(open), REOPEN_MS);
  }
}

function secure(socket: Socket, opened: number, fail: (why: string) => void): void {
  const tls = startTls({ socket, secureContext, servername: options.host });
  let started = opened;
  let missing = 0;
  let head = "";
  tls.on("error", (error) => fail(error.message));
  tls.on("close", () => {
    if (!options.fresh) fail("The connection was closed");
  });
  tls.once("secureConnect", () => tls.write(request));
  tls.on("data", (bytes: Buffer) => {
    missing -= bytes.length;
    if (missing < 0 && !takeHead(bytes)) return;
    if (missing === 0) count();
  });

  /** False: the head is not whole yet, or wrong. Otherwise `missing` is what has yet to come of the body. */
  function takeHead(bytes: Buffer): boolean {
    head += bytes.toString("latin1");
    missing = 0;
    const end = head.indexOf(HEAD_END);
    if (end < 0) return false;
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (!head.startsWith("HTTP/1.1 200 ") || length === undefined) {
      fail(head.split("\r\n")[0] ?? "");
      return false;
    }
    missing = Number(length) - (head.length - end - HEAD_END.length);
    head = "";
    return true;
  }

  function count(): void {
    if (measuring) {
      requests += 1;
      latencies.push(performance.now() - started);
    }
    if (options.fresh) {
      tls.destroy();
      whenRunning(open);
    } else whenRunning(again);
  }

  function again(): void {
    started = performance.now();
    tls.write(request);
  }
}

/** So many clients on one connection. */
function multiplex(socket: Socket, streams: number, fail: (why: string) => void): void {
  const tls = startTls({ socket, secureContext, servername: options.host, ALPNProtocols: ["h2"] });
  const session = startH2(`https://${options.host}`, { createConnection: () => tls });
  tls.on("error", (error) => fail(error.message));
  session.on("error", (error) => fail(error.message));
  session.on("close", () => fail("The connection was closed"));
  for (let at = 0; at < streams; at += 1) ask();

  function ask(): void {
    if (session.destroyed) return;
    const started = performance.now();
    const stream = session.request(headers, { endStream: true });
    let missing = Number.NaN;
    stream.on("response", ({ ":status": status, "content-length": length }) => {
      if (status === 200) missing = Number(length);
      else fail(`Status ${status}`);
    });
    stream.on("data", (bytes: Buffer) => {
      missing -= bytes.length;
    });
    stream.on("error", (error) => fail(error.message));
    stream.on("close", () => {
      if (missing !== 0) fail("The answer was cut");
      if (measuring) {
        requests += 1;
        latencies.push(performance.now() - started);
      }
      whenRunning(ask);
    });
  }
}

function whenRunning(go: () => void): void {
  if (running) go();
  else parked.push(go);
}
