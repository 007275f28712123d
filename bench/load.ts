/** The load generator: runs in the gate's namespace, keeps so many clients busy, and prints what it counted. */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { createSecureContext, connect as startTls } from "node:tls";
import { cpuSeconds, memoryBytes } from "./process-tree.ts";

/** The one argument, as JSON. */
export interface LoadOptions {
  /** The proxy, on 127.0.0.1. */
  readonly port: number;
  readonly host: string;
  readonly path: string;
  readonly connections: number;
  readonly fresh: boolean;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** PEM of whoever signs what the clients see. */
  readonly caFile: string;
  /** The contender's first process. */
  readonly pid: number;
}

/** The one line of output, as JSON. */
export interface LoadResult {
  /** Answers with status 200 within the window; nothing else counts as a request. */
  readonly requests: number;
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

let measuring = false;
let stopping = false;
let requests = 0;
let errors = 0;
let firstError: string | undefined;
let latencies: number[] = [];

for (let index = 0; index < options.connections; index += 1) open();
setTimeout(measure, options.warmUpMs);

function measure(): void {
  [requests, errors, latencies, measuring] = [0, 0, [], true];
  const started = performance.now();
  const before = cpuSeconds(options.pid);
  setTimeout(() => {
    const used = cpuSeconds(options.pid) - before;
    const seconds = (performance.now() - started) / 1000;
    stopping = true;
    report(seconds, used);
  }, options.measureMs);
}

function report(seconds: number, used: number): void {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  const result: LoadResult = {
    requests,
    errors,
    firstError,
    seconds,
    cpuSeconds: used,
    memoryBytes: memoryBytes(options.pid),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit());
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
    else secure(socket, started, fail);
  });

  function fail(why: string): void {
    if (over || stopping) return;
    over = true;
    errors += 1;
    firstError ??= why;
    socket.destroy();
    setTimeout(open, REOPEN_MS);
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
    if (missing === 0) next();
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

  function next(): void {
    if (stopping) return;
    const now = performance.now();
    if (measuring) {
      requests += 1;
      latencies.push(now - started);
    }
    started = now;
    if (!options.fresh) {
      tls.write(request);
      return;
    }
    tls.destroy();
    open();
  }
}
