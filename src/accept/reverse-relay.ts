/**
 * The adapter of http-proxy: relays a base-URL request into a stream of this process, whose far end is read like any
 * client's connection. The library never dials, and what it writes is judged by our own codec.
 */
import "./legacy-extend.ts";
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import httpProxy from "http-proxy";
import { isConnectionSpecific, nominatedKeys } from "../base/hop-by-hop.ts";
import type { Field, FieldLines, Framing, ResponseHead } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { BodyWriter, renderResponseHead } from "../wire/message-writer.ts";
import type { ParsedRequest } from "../wire/request-head.ts";
import { websocketRequest } from "../wire/upgrade.ts";
import type { BodyEnd } from "./reverse-client.ts";
import { type BaseArrival, finishResponse } from "./reverse-listener.ts";
import { type Scope, scopeResponse } from "./reverse-response.ts";
import type { StreamEnd } from "./stream-pair.ts";

export interface Relaying {
  readonly arrival: BaseArrival;
  readonly scope: Scope;
  /** The one Host that the upstream is asked by. */
  readonly host: string;
  /** Exchanges of one key may share a stream, one after the other. */
  readonly key: string;
  /** The near end of a new stream, whose far end is being read. */
  readonly open: () => StreamEnd;
}

export type ReverseRelay = (relaying: Relaying) => void;

type Pass = (this: unknown, ...parameters: never) => unknown;

/** Where nothing stands: http-proxy wants a target, and our agent does not look at it. */
const TARGET = { protocol: "http:", host: "gate", port: 80 };

export function createReverseRelay(limits: Limits): ReverseRelay {
  const proxy = httpProxy.createProxyServer({ selfHandleResponse: true });
  const passes = proxy as unknown as { webPasses: readonly Pass[] };
  // It would take away the framing of a DELETE and leave its body: a second request (CVE-2026-29057).
  passes.webPasses = passes.webPasses.filter(({ name }) => name !== "deleteLength");
  return (relaying) => {
    const { arrival } = relaying;
    const { client, message, reply } = arrival;
    const options = {
      target: TARGET,
      agent: agentOf(relaying),
      // Taken over into the options of the request; a new object each time, for the library writes into it.
      ssl: { maxHeaderSize: limits.head_bytes * 2, insecureHTTPParser: false },
    };
    const failed = (): void => {
      if (!client.closing || !client.socket.writableEnded) client.cut();
    };
    // What it knows of the request, it is told: its own reading joins, drops and re-parses.
    message.url = "/";
    message.headers = reply.kind === "bare" ? { upgrade: "websocket" } : {};
    if (reply.kind === "response") proxy.web(message, reply.response, options, failed);
    else proxy.ws(message, reply.socket, reply.early, options, failed);
  };
}

/** What Node's client asks for a socket. All is set before it has any, so before it can have written a byte. */
function agentOf(relaying: Relaying): object {
  const { arrival, key, open } = relaying;
  const { client, message, reply } = arrival;
  return {
    protocol: "http:",
    defaultPort: TARGET.port,
    // Without it the library says `Connection: close` to both sides.
    keepAlive: true,
    addRequest: (request: ClientRequest): void => {
      frame(request, relaying);
      passTrailers(message, request);
      if (reply.kind === "response") followResponse(request, relaying, reply.response);
      else followSwitch(request, relaying, client.socket);
      const stream = client.stream(key, open);
      stream.once("free", () => client.release(key, stream));
      client.breakOff = (how) => breakOff(request, stream, message, how);
      // Node's client takes any Duplex; only the type asks for a socket.
      request.onSocket(stream as unknown as Socket);
    },
  };
}

/** The exchange behind the stream sees what the listener saw, and judges it by its own codec. */
function breakOff(request: ClientRequest, stream: StreamEnd, message: IncomingMessage, how: BodyEnd): void {
  message.unpipe(request);
  // Of a body whose first bytes are wrong the head has not left yet; it has once the library had its turn.
  request.flushHeaders();
  setImmediate(() => {
    // Behind a whole chunk, an empty line in the place of a size. A body with a length can only end.
    if (how === "malformed") stream.write("\r\n");
    else stream.end();
  });
}

/** Path and fields byte for byte, Host and framing explicitly; what belongs to the client's hop ends here. */
function frame(request: ClientRequest, { arrival, scope, host }: Relaying): void {
  for (const name of request.getHeaderNames()) request.removeHeader(name);
  request.path = scope.target;
  const lines = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (const { name, key, value } of outbound(arrival.request, host)) {
    const line = lines.get(key);
    if (line === undefined) lines.set(key, { name, values: [value] });
    else line.values.push(value);
  }
  for (const { name, values } of lines.values()) {
    request.setHeader(name, values.length === 1 ? String(values[0]) : values);
  }
  // Otherwise the head would wait for the body, and the client waits with it for this head's answer.
  if (arrival.request.expectContinue) request.flushHeaders();
}

function outbound(request: ParsedRequest, host: string): FieldLines {
  const nominated = nominatedKeys(request.fields);
  const fields = request.fields
    .filter(({ key }) => !isHop(key, request) && nominated?.has(key) !== true)
    .map((field) => (field.key === "host" ? { ...field, value: host } : field));
  return [...fields, ...framingFields(request.framing), ...switchFields(request)];
}

/** What this hop says for itself, or ends with it. */
function isHop(key: string, { expectContinue }: ParsedRequest): boolean {
  if (key === "expect") return !expectContinue;
  return isConnectionSpecific(key) || key === "content-length" || key === "trailer";
}

function framingFields(framing: Framing): FieldLines {
  if (framing.kind === "length") return [fieldOf("Content-Length", `${framing.length}`)];
  return framing.kind === "chunked" ? [fieldOf("Transfer-Encoding", "chunked")] : [];
}

function switchFields(request: ParsedRequest): FieldLines {
  if (!websocketRequest(request)) return [];
  return [fieldOf("Connection", "Upgrade"), fieldOf("Upgrade", "websocket")];
}

function passTrailers(from: IncomingMessage, to: ClientRequest): void {
  // Before the listener by which the library ends the request.
  from.once("end", () => {
    if (from.rawTrailers.length > 0) to.addTrailers(pairsOf(from.rawTrailers));
  });
}

function followResponse(request: ClientRequest, relaying: Relaying, response: ServerResponse): void {
  const { client, message } = relaying.arrival;
  request.once("continue", () => response.writeContinue());
  request.once("response", (incoming: IncomingMessage) => {
    incoming.on("error", () => {});
    incoming.once("close", () => {
      // What was cut must not look whole, nor leave the client waiting.
      if (!incoming.complete) client.cut();
    });
    const framed = message.httpVersion === "1.1" && isChunked(incoming);
    try {
      respond(incoming, response, answerFields(incoming, relaying), framed);
    } catch {
      // Node refuses to write what our own codec has read: nothing that was begun may look whole.
      client.cut();
      return;
    }
    incoming.once("end", () => {
      if (framed && incoming.rawTrailers.length > 0) response.addTrailers(pairsOf(incoming.rawTrailers));
      finishResponse(response, message, client);
    });
    incoming.pipe(response, { end: false });
  });
  response.once("close", () => {
    // The client left: whoever still answers it is let go.
    if (!response.writableFinished) request.destroy();
  });
}

function respond(
  { statusCode = 0, statusMessage = "" }: IncomingMessage,
  response: ServerResponse,
  fields: FieldLines,
  framed: boolean,
): void {
  // Only chunks have trailers, and Node throws where others are announced.
  const lines = framed
    ? [...fields, fieldOf("Transfer-Encoding", "chunked")]
    : fields.filter(({ key }) => key !== "trailer");
  response.sendDate = false;
  response.writeHead(
    statusCode,
    statusMessage,
    lines.flatMap(({ name, value }) => [name, value]),
  );
  // With the first of the body where there is some already, and without where it is long in coming.
  setImmediate(() => {
    if (!response.writableEnded) response.flushHeaders();
  });
}

/** After a 101 bytes pass as they come; any other answer is written here, since the library would not frame it. */
function followSwitch(request: ClientRequest, relaying: Relaying, socket: Socket): void {
  const { client } = relaying.arrival;
  request.once("upgrade", (incoming: IncomingMessage, stream: StreamEnd) => {
    // Fields may be called `constructor`.
    const headers: Record<string, string[]> = Object.create(null);
    for (const { name, value } of answerFields(incoming, relaying))
      headers[name] = [...(headers[name] ?? []), value];
    // The library writes these down as they are, one line for each value.
    Object.assign(incoming, { headers: { ...headers, Connection: ["Upgrade"], Upgrade: ["websocket"] } });
    stream.once("close", () => {
      if (!stream.readableEnded) client.cut();
    });
  });
  // Once the library has put its own listener there, which goes.
  queueMicrotask(() => {
    request.removeAllListeners("response");
    request.once("response", (incoming) => writeBare(incoming, relaying, socket));
  });
}

function writeBare(incoming: IncomingMessage, relaying: Relaying, socket: Socket): void {
  const { client } = relaying.arrival;
  const { statusCode = 0, statusMessage = "" } = incoming;
  client.closing = true;
  const framing = bareFraming(incoming);
  const fields = answerFields(incoming, relaying);
  const head: ResponseHead = { status: statusCode, phrase: statusMessage, minor: 1, fields };
  const writer = new BodyWriter(framing, socket);
  writer.head(renderResponseHead(head, framing, { close: true, minor: 1 }));
  incoming.on("error", () => {});
  incoming.on("data", (bytes: Buffer) => {
    if (writer.write(bytes)) return;
    incoming.pause();
    socket.once("drain", () => incoming.resume());
  });
  incoming.once("end", () => {
    writer.end([]);
    socket.end();
  });
  incoming.once("close", () => {
    if (!incoming.complete) client.cut();
  });
}

function bareFraming(incoming: IncomingMessage): Framing {
  const { statusCode = 0, headers } = incoming;
  // Its length, where it has one, is that of a body that is not sent (RFC 9110 section 8.6).
  if (statusCode === 204 || statusCode === 304) return { kind: "none" };
  if (isChunked(incoming)) return { kind: "chunked" };
  const length = headers["content-length"];
  return length === undefined ? { kind: "none" } : { kind: "length", length: Number(length) };
}

/** In the order and the spelling of the upstream, repeated lines repeated. */
function answerFields(incoming: IncomingMessage, { arrival, scope }: Relaying): FieldLines {
  const { client } = arrival;
  if (incoming.headers.connection === "close") client.closing = true;
  const read = pairsOf(incoming.rawHeaders).map(([name, value]) => fieldOf(name, value));
  const fields = scopeResponse(read, scope);
  return client.closing && arrival.reply.kind === "response"
    ? [...fields, fieldOf("Connection", "close")]
    : fields;
}

function isChunked(incoming: IncomingMessage): boolean {
  return incoming.headers["transfer-encoding"] !== undefined;
}

function fieldOf(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

/** Node gives names and values in turn. */
function pairsOf(flat: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < flat.length; index += 2) {
    pairs.push([String(flat[index]), String(flat[index + 1])]);
  }
  return pairs;
}
