/** The operator's own listener: metrics, health and readiness. It serves Prometheus and people, never a sandbox. */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import type { Resolution } from "../hooks/approvals.ts";
import { readResolution } from "../hooks/resolution.ts";

export interface AdminOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** What `Authorization: Bearer` must carry for all but the three public pages; undefined: there is nothing else. */
  readonly token: () => string | undefined;
  readonly metrics: () => Promise<{ readonly type: string; readonly text: string }>;
  readonly ready: () => Readiness;
  /** What waits for a person's word, and the giving of it. */
  readonly approvals: ApprovalDesk;
  readonly version: string;
}

export interface Readiness {
  readonly listening: boolean;
  readonly draining: boolean;
  readonly mode: "enforce" | "evaluate_only";
  /** First 12 characters of the digest of the policy in force. */
  readonly policy: string;
  /** How the last load of the config went. A failed one leaves the policy before it in force. */
  readonly config: {
    readonly ok: boolean;
    /** Milliseconds since the epoch. */
    readonly at: number;
    /** What was wrong; never quotes a value. */
    readonly problem: string | undefined;
  };
  /** Keys of the secrets that cannot be resolved; never their values. */
  readonly secretsUnavailable: readonly string[];
  readonly recordsDropped: number;
}

export interface ApprovalDesk {
  pending(): Promise<readonly object[]>;
  /** Undefined where nothing of this id waits. */
  resolve(id: string, resolution: Resolution): Promise<object | undefined>;
}

export interface Admin {
  /** The address that is listened on. Rejects with the listener's error. */
  listen(): Promise<{ readonly host: string; readonly port: number }>;
  /** Ends open connections too. */
  close(): Promise<void>;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly fields?: Readonly<Record<string, string>>;
}

const TEXT = "text/plain; charset=utf-8";
const JSON_TYPE = "application/json";

const NOT_FOUND: Page = { status: 404, type: TEXT, text: "Not found\n" };
const WRONG_HOST: Page = { status: 421, type: TEXT, text: "Host must be an address or localhost\n" };
const WRONG_METHOD: Page = {
  status: 405,
  type: TEXT,
  text: "Only GET and HEAD\n",
  fields: { allow: "GET, HEAD" },
};
const WRONG_BODY: Page = {
  status: 400,
  type: TEXT,
  text: 'The body is {"outcome":"approve" or "reject","by":NAME,"for":"once", "sandbox" or minutes such as "30m"}\n',
};
const WRONG_TOKEN: Page = {
  status: 401,
  type: TEXT,
  text: "A token is needed\n",
  fields: { "www-authenticate": 'Bearer realm="Sallyport"' },
};

/** Small on purpose: its clients are a scraper, a probe and a person. */
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 8_192,
};
const CONNECTIONS = 64;
const BODY_BYTES = 4_096;
const SOCKET_TIMEOUT_MS = 30_000;

export function createAdmin(options: AdminOptions): Admin {
  const server = createServer(LIMITS, (request, response) => {
    serve(options, request).then(
      (page) => send(page, request, response),
      () => send({ status: 500, type: TEXT, text: "The page cannot be made\n" }, request, response),
    );
  });
  server.maxConnections = CONNECTIONS;
  server.setTimeout(SOCKET_TIMEOUT_MS);
  return { listen: () => listen(server, options), close: () => close(server) };
}

async function serve(options: AdminOptions, request: IncomingMessage): Promise<Page> {
  const path = request.url?.split("?", 1)[0];
  if (path === "/metrics" || path === "/healthz" || path === "/readyz") {
    return request.method === "GET" || request.method === "HEAD" ? publicPage(options, path) : WRONG_METHOD;
  }
  const token = options.token();
  if (token === undefined) {
    return NOT_FOUND;
  }
  // A page in a browser can make it send requests here by a name of its own (DNS rebinding), but not by ours.
  if (!isOurHost(request.headers.host)) {
    return WRONG_HOST;
  }
  if (!isBearer(request.headers.authorization, token)) return WRONG_TOKEN;
  return approvalPage(options.approvals, path, request);
}

async function approvalPage(
  approvals: ApprovalDesk,
  path: string | undefined,
  request: IncomingMessage,
): Promise<Page> {
  if (path === "/approvals" && request.method === "GET") {
    return json(200, { approvals: await approvals.pending() });
  }
  const id = /^\/approvals\/([0-9a-f]{12})$/.exec(path ?? "")?.[1];
  if (id === undefined) return NOT_FOUND;
  if (request.method !== "POST") return { ...WRONG_METHOD, text: "Only POST\n", fields: { allow: "POST" } };
  const resolution = readResolution(await bodyOf(request));
  if (resolution === undefined) return WRONG_BODY;
  const resolved = await approvals.resolve(id, resolution);
  return resolved === undefined ? NOT_FOUND : json(200, { resolved });
}

function json(status: number, value: object): Page {
  return { status, type: JSON_TYPE, text: `${JSON.stringify(value)}\n` };
}

/** Undefined where it is larger than any resolution. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let body = "";
  for await (const bytes of request) {
    body += String(bytes);
    if (body.length > BODY_BYTES) return undefined;
  }
  return body;
}

async function publicPage(options: AdminOptions, path: "/metrics" | "/healthz" | "/readyz"): Promise<Page> {
  switch (path) {
    case "/metrics": {
      const { type, text } = await options.metrics();
      return { status: 200, type, text };
    }
    case "/healthz":
      return { status: 200, type: TEXT, text: "ok\n" };
    case "/readyz":
      return readyPage(options);
  }
}

/** A bad config or a missing secret is said but keeps the gate ready: what it can serve, it serves. */
function readyPage(options: AdminOptions): Page {
  const state = options.ready();
  const ready = state.listening && !state.draining;
  const body = {
    ready,
    version: options.version,
    listening: state.listening,
    draining: state.draining,
    mode: state.mode,
    enforcing: state.mode === "enforce",
    policy: state.policy,
    config: {
      last_reload: state.config.ok ? "success" : "failure",
      at: new Date(state.config.at).toISOString(),
      problem: state.config.problem ?? null,
    },
    secrets_unavailable: state.secretsUnavailable,
    records_dropped: state.recordsDropped,
  };
  return { status: ready ? 200 : 503, type: JSON_TYPE, text: `${JSON.stringify(body)}\n` };
}

function send(page: Page, request: IncomingMessage, response: ServerResponse): void {
  const body = Buffer.from(page.text);
  // What a client still sends as a body is not read: the connection ends instead.
  const whole =
    request.headers["content-length"] === undefined && request.headers["transfer-encoding"] === undefined;
  response.writeHead(page.status, {
    "content-type": page.type,
    "content-length": body.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(whole ? {} : { connection: "close" }),
    ...page.fields,
  });
  response.end(body);
}

/** `localhost` or a literal address, with or without a port. */
function isOurHost(host = ""): boolean {
  const name = host.replace(/:\d{1,5}$/, "").toLowerCase();
  return name === "localhost" || isIP(name) === 4 || (/^\[.*\]$/.test(name) && isIP(name.slice(1, -1)) === 6);
}

/** Both sides are hashed first, so that neither time nor length tells how near a guess came. */
function isBearer(authorization: string | undefined, token: string): boolean {
  const given = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function listen(server: Server, options: AdminOptions): Promise<{ host: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      const { address, port } = server.address() as AddressInfo;
      resolve({ host: address, port });
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
