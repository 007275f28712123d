/** The base-URL listener: Node's HTTP server in front, and each head that it read is read again by our own codec. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { asFailure, Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { type ParsedRequest, parseRequestHead } from "../wire/request-head.ts";
import { answerBytes, headOf } from "./answer.ts";
import type { Answer } from "./refusal.ts";
import { type BodyEnd, LINGER_MS, ReverseClient } from "./reverse-client.ts";

/** How a request may be answered: as HTTP, or on the bare connection where it asks to leave HTTP. */
export type Reply =
  | { readonly kind: "response"; readonly response: ServerResponse }
  | { readonly kind: "bare"; readonly socket: Duplex; readonly early: Buffer };

/** One request, strictly read. Its target is still the client's. */
export interface BaseArrival {
  readonly client: ReverseClient;
  readonly request: ParsedRequest;
  /** For its body. */
  readonly message: IncomingMessage;
  readonly reply: Reply;
}

export interface ReverseHandlers {
  /** False: there are too many. */
  connected(client: ReverseClient): boolean;
  request(arrival: BaseArrival): void;
  /** What to tell a client whose bytes are no request. */
  malformed(failure: Failure, client: ReverseClient): Answer;
}

const CHECK_MS = 1_000;
/** As at the other listeners: large enough that bulk data takes few turns. */
const HIGH_WATER_MARK = 262_144;

export function createReverseListener(limits: Limits, handlers: ReverseHandlers): Server {
  const server = createServer({
    insecureHTTPParser: false,
    requireHostHeader: false,
    maxHeaderSize: limits.head_bytes,
    connectionsCheckingInterval: CHECK_MS,
    noDelay: true,
    highWaterMark: HIGH_WATER_MARK,
    shouldUpgradeCallback: asksForWebSocket,
  });
  // Nothing may be dropped unseen: how many fields there may be is for our own codec to say (CVE-2026-58044).
  server.maxHeadersCount = 0;
  // A body may take as long as it moves; what is behind this listener sees to that.
  server.requestTimeout = 0;
  // A client may close its side after the request and still wants the answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  new Front(server, limits, handlers);
  return server;
}

/** Answers, and lets a client that is still sending its body read that before the connection ends. */
export function answerReply({ reply, message, client }: Omit<BaseArrival, "request">, answer: Answer): void {
  client.closing = true;
  if (reply.kind === "bare") {
    endBare(reply.socket, answer);
    return;
  }
  const { response } = reply;
  const { status, phrase, fields } = headOf(answer);
  response.sendDate = false;
  response.writeHead(
    status,
    phrase,
    [...fields, CLOSE].flatMap(({ name, value }) => [name, value]),
  );
  if (message.method !== "HEAD") response.write(answer.body);
  finishResponse(response, message, client);
}

/**
 * Ends a response whose body has been written, once the request's has been read or was waited for long enough. A body
 * that does not come ends the connection: what follows could be it.
 */
export function finishResponse(
  response: ServerResponse,
  message: IncomingMessage,
  client: ReverseClient,
): void {
  if (message.complete || client.broken) {
    response.end();
    return;
  }
  response.flushHeaders();
  const patience = setTimeout(finish, LINGER_MS);
  function finish(): void {
    clearTimeout(patience);
    client.closing ||= !message.complete;
    response.end();
  }
  message.unpipe();
  message.once("end", finish);
  message.once("close", finish);
  message.resume();
}

const CLOSE = { name: "Connection", value: "close" };

class Front {
  readonly #limits: Limits;
  readonly #handlers: ReverseHandlers;
  readonly #clients = new WeakMap<Duplex, ReverseClient>();

  constructor(server: Server, limits: Limits, handlers: ReverseHandlers) {
    this.#limits = limits;
    this.#handlers = handlers;
    server.on("connection", (socket: Socket) => this.#connected(server, socket));
    const asResponse = (message: IncomingMessage, response: ServerResponse): void =>
      this.#take(message, { kind: "response", response });
    server.on("request", asResponse);
    server.on("checkContinue", asResponse);
    server.on("checkExpectation", asResponse);
    const asBare = (message: IncomingMessage, socket: Duplex, early: Buffer): void =>
      this.#take(message, { kind: "bare", socket, early });
    server.on("upgrade", asBare);
    server.on("connect", asBare);
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => this.#broken(error, socket));
  }

  #connected(server: Server, socket: Socket): void {
    // Read anew each time: a reload may have changed them.
    server.headersTimeout = this.#limits.head_timeout;
    server.keepAliveTimeout = this.#limits.idle_timeout;
    socket.on("error", () => {});
    const client = new ReverseClient(socket);
    this.#clients.set(socket, client);
    if (!this.#handlers.connected(client)) socket.resetAndDestroy();
  }

  #take(message: IncomingMessage, reply: Reply): void {
    const client = this.#clients.get(message.socket);
    if (client === undefined) return;
    if (reply.kind === "response") {
      const { response } = reply;
      client.take(() => {
        client.response = response;
        client.message = message;
        response.once("close", () => client.done());
        this.#read({ client, message, reply });
      });
    } else if (client.busy) client.cut();
    else client.take(() => this.#read({ client, message, reply }));
  }

  #read(arrival: Omit<BaseArrival, "request">): void {
    let request: ParsedRequest;
    try {
      request = reread(arrival.message, this.#limits);
    } catch (error) {
      answerReply(
        arrival,
        this.#handlers.malformed(asFailure(error, "The request could not be read"), arrival.client),
      );
      return;
    }
    this.#handlers.request({ ...arrival, request });
  }

  /** Not HTTP, not in time, or gone. */
  #broken(error: NodeJS.ErrnoException, socket: Duplex): void {
    const client = this.#clients.get(socket);
    const failure = failureOf(error);
    if (client === undefined || client.socket.bytesRead === 0) socket.destroy();
    // Of a request that was answered already nothing more can be said, and what follows a last one is thrown away.
    else if (client.closing || client.broken || (error.code === "HPE_CLOSED_CONNECTION" && client.busy))
      return;
    else if (failure === undefined) socket.destroy();
    else this.#break(failure, client, error.code === "HPE_INVALID_EOF_STATE" ? "ended" : "malformed");
  }

  /** One record for each arrival: a body belongs to the exchange that is under way, a head is another's. */
  #break(failure: Failure, client: ReverseClient, how: BodyEnd): void {
    client.broken = true;
    if (client.message?.complete !== false) client.take(() => this.#refuse(failure, client));
    else if (client.breakOff !== undefined) client.breakOff(how);
    else client.cut();
  }

  #refuse(failure: Failure, client: ReverseClient): void {
    client.closing = true;
    client.closeStreams();
    endBare(client.socket, this.#handlers.malformed(failure, client));
  }
}

function endBare(socket: Duplex, answer: Answer): void {
  socket.end(answerBytes(answer));
  socket.resume();
  const patience = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(patience));
}

/**
 * What Node's parser takes and we do not is refused here: HTTP/0.9, two Hosts, codings before chunked, nominations.
 * Throws `E_BAD_REQUEST`.
 */
function reread(message: IncomingMessage, limits: Limits): ParsedRequest {
  const { method, url, httpVersion, rawHeaders } = message;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    text += `${rawHeaders[index]}: ${rawHeaders[index + 1]}\r\n`;
  }
  const bytes = Buffer.from(`${text}\r\n`, "latin1");
  return parseRequestHead(bytes, bytes.length, limits);
}

/** Everything else that may be asked for by Upgrade is left out, and the request stays HTTP/1.1 (F09). */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  const bodiless = headers["content-length"] === undefined && headers["transfer-encoding"] === undefined;
  return method === "GET" && bodiless && headers.upgrade?.toLowerCase() === "websocket";
}

const STATUS_OF_CODE: ReadonlyMap<string, number> = new Map([
  ["HPE_HEADER_OVERFLOW", 431],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", 413],
  ["HPE_INVALID_VERSION", 505],
]);

/** Undefined where there is nobody to tell. */
function failureOf({ code = "" }: NodeJS.ErrnoException): Failure | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new Failure("E_TIMEOUT", "client", "The request head did not arrive in time", { status: 408 });
  }
  if (!code.startsWith("HPE_") || code === "HPE_CLOSED_CONNECTION") return undefined;
  const status = STATUS_OF_CODE.get(code) ?? 400;
  return new Failure("E_BAD_REQUEST", "client", "Malformed request", { status });
}
