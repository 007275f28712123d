/** The client's side of HTTP/2: a TLS connection in, its streams out, each of them an arrival like any other. */

import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
  sensitiveHeaders,
} from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Claims, Door } from "../model/arrival.ts";
import type { Expiring } from "../model/deadline.ts";
import { asFailure, Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { parseAuthority } from "../wire/authority.ts";
import { headerListLines, headerListSize } from "../wire/h2-fields.ts";
import { type H2Request, readH2Request } from "../wire/h2-request.ts";
import { endsWithHead, renderH2Response } from "../wire/h2-response.ts";
import type { ParsedRequest } from "../wire/request-head.ts";
import { headOf } from "./answer.ts";
import type { Http1Handlers, Http1Surroundings } from "./arrival.ts";
import { Budget } from "./h2-budget.ts";
import { Http2Inbound, type StreamHost } from "./h2-inbound.ts";
import type { Answer } from "./refusal.ts";

export interface Http2Ends {
  readonly socket: TLSSocket;
  readonly transport: Socket;
  /** The upstream takes an extended CONNECT, so it is offered here too (RFC 8441). */
  readonly websockets: boolean;
}

/** How long a session may take to say goodbye. */
const LINGER_MS = 2_000;
const MIB = 1_048_576;
const HTTPS_PORT = 443;
const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR } = constants;

export class Http2Connection implements StreamHost, Expiring {
  deadline: number;
  slot: number | undefined = undefined;
  readonly #session: ServerHttp2Session;
  readonly #socket: TLSSocket;
  readonly #transport: Socket;
  readonly #door: Door;
  readonly #handlers: Http1Handlers;
  readonly #around: Http1Surroundings;
  readonly #resets: Budget;
  readonly #controls: Budget;
  readonly #whenClosed: (() => void)[] = [];
  #open = 0;
  #closed = false;

  constructor(ends: Http2Ends, door: Door, handlers: Http1Handlers, around: Http1Surroundings) {
    const { limits, deadlines } = around;
    this.#socket = ends.socket;
    this.#transport = ends.transport;
    this.#door = door;
    this.#handlers = handlers;
    this.#around = around;
    this.#resets = new Budget(limits.h2_resets_per_minute, deadlines.now());
    this.#controls = new Budget(limits.h2_control_frames_per_minute, deadlines.now());
    this.deadline = deadlines.now() + limits.head_timeout;
    deadlines.add(this);
    this.#session = beginSession(ends, limits);
    this.#listen();
  }

  /** Tells once that the connection is closed. */
  whenClosed(callback: () => void): void {
    if (this.#closed) callback();
    else this.#whenClosed.push(callback);
  }

  /** Says GOAWAY; streams that are open end as they would. */
  drain(): void {
    this.#session.close();
    if (this.#open === 0) this.deadline = this.#in(LINGER_MS);
  }

  /** Cuts whatever is under way. */
  cut(): void {
    // The socket first: a session that may still write waits for that, and then nobody hears of its end.
    this.#transport.resetAndDestroy();
    this.#socket.destroy();
    this.#session.destroy();
    this.#onClose();
  }

  /** No stream for too long, or no preface. */
  expired(): void {
    if (this.#session.closed || this.#session.destroyed) this.cut();
    else this.drain();
  }

  // --- StreamHost ---

  moved(): void {
    this.#controls.earn();
  }

  broke(): void {
    this.#spend(this.#resets);
  }

  released(): void {
    this.#open -= 1;
    if (this.#open > 0 || this.#closed) return;
    const { idle_timeout } = this.#around.limits;
    this.deadline = this.#in(this.#session.closed ? LINGER_MS : idle_timeout);
    if (this.#around.draining()) this.drain();
  }

  // --- Internal ---

  #in(ms: number): number {
    return this.#around.deadlines.now() + ms;
  }

  #listen(): void {
    const session = this.#session;
    session.on("stream", this.#onStream);
    session.on("ping", this.#onControl);
    // The first are the preface's; later ones are no reason to wait longer for a stream.
    session.once("remoteSettings", () => {
      if (this.#open === 0) this.deadline = this.#in(this.#around.limits.idle_timeout);
    });
    session.on("remoteSettings", this.#onControl);
    // Every end is heard at `close`; these are there so that an error is never unheard.
    session.on("error", ignore);
    session.on("frameError", ignore);
    session.once("close", this.#onClose);
  }

  readonly #onStream = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    pairs: readonly string[],
  ): void => {
    this.#open += 1;
    this.deadline = Number.POSITIVE_INFINITY;
    const whole = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    let request: H2Request;
    let claims: Claims;
    try {
      request = readH2Request(pairs, whole, this.#around.limits);
      claims = claimsOf(request);
    } catch (error) {
      this.#refuse(stream, asFailure(error, "The request could not be read"));
      return;
    }
    const sensitive = sensitiveOf(headers);
    const around = { limits: this.#around.limits, deadlines: this.#around.deadlines, host: this };
    const inbound = new Http2Inbound(stream, { request, whole, sensitive }, around);
    this.#handlers.request({
      request: asParsed(request),
      claims,
      door: this.#door,
      inbound,
      transport: this.#transport,
    });
  };

  /** Malformed: the stream alone is told; a client that goes on like this has its connection closed. */
  #refuse(stream: ServerHttp2Stream, failure: Failure): void {
    const { deadlines, limits } = this.#around;
    // A client whose window is shut would keep its answer, and with it the connection, for ever.
    const entry: Expiring = {
      deadline: this.#in(limits.progress_timeout),
      expired: () => stream.close(constants.NGHTTP2_CANCEL),
    };
    deadlines.add(entry);
    stream.on("error", ignore);
    stream.once("close", () => {
      deadlines.remove(entry);
      this.released();
    });
    this.broke();
    if (stream.destroyed) return;
    const answer = this.#handlers.malformed(failure);
    if (stream.closed) return;
    if (answer === undefined) stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
    else say(stream, answer);
  }

  readonly #onControl = (): void => this.#spend(this.#controls);

  #spend(budget: Budget): void {
    if (this.#closed || budget.spend(this.#around.deadlines.now())) return;
    // RFC 9113 section 10.5: what it does looks like an attack.
    const failure = new Failure("E_BAD_REQUEST", "client", "The client floods its connection");
    this.#session.destroy(failure, NGHTTP2_ENHANCE_YOUR_CALM);
    // One that does not read its GOAWAY is not waited for.
    this.deadline = this.#in(LINGER_MS);
  }

  readonly #onClose = (): void => {
    if (this.#closed) return;
    this.#closed = true;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
    this.#handlers.closed();
    for (const callback of this.#whenClosed) callback();
  };
}

/**
 * A server `TLSSocket` made by hand stays `secureConnecting`, for nobody but `tls.Server` clears the mark, and a
 * session on it waits for ever. The handshake is over by now.
 */
function beginSession({ socket, websockets }: Http2Ends, limits: Limits): ServerHttp2Session {
  (socket as TLSSocket & { secureConnecting: boolean }).secureConnecting = false;
  // Accepted half-open; but a peer that ends its side of HTTP/2 has ended all of it.
  socket.allowHalfOpen = false;
  return performServerHandshake(socket, sessionOptions(limits, websockets));
}

function sessionOptions(limits: Limits, websockets: boolean): ServerOptions {
  return {
    settings: {
      maxConcurrentStreams: limits.h2_streams,
      initialWindowSize: limits.h2_client_window,
      maxHeaderListSize: headerListSize(limits),
      enableConnectProtocol: websockets,
    },
    // Past our own count: fields too many get a 431 in words, and a record, for as long as their list is taken at all.
    maxHeaderListPairs: headerListLines(limits),
    maxSessionMemory: Math.ceil(limits.h2_session_bytes / MIB),
    maxSessionInvalidFrames: limits.h2_bad_frames,
    maxSessionRejectedStreams: limits.h2_bad_frames,
    // nghttp2's own bucket stands behind ours.
    streamResetBurst: limits.h2_resets_per_minute * 2,
    streamResetRate: Math.ceil(limits.h2_resets_per_minute / 30),
    // Repetition is judged, and refused where it matters, by us.
    strictSingleValueFields: false,
  };
}

/** Throws `E_BAD_REQUEST` where a name cannot be read, as where userinfo stands before it. */
function claimsOf({ method, authority, host }: H2Request): Claims {
  // A CONNECT is refused for its method, wherever it would lead.
  const claimed = method === "CONNECT" ? undefined : authority;
  return {
    authority: claimed === undefined ? undefined : parseAuthority(claimed, HTTPS_PORT),
    host: host === undefined ? undefined : parseAuthority(host, HTTPS_PORT),
    proxyAuthorization: undefined,
  };
}

function asParsed({
  method,
  target,
  fields,
  framing,
  host,
  websocket,
  expectContinue,
}: H2Request): ParsedRequest {
  return {
    method,
    rawTarget: target,
    form: method === "CONNECT" ? "authority" : target === "*" ? "asterisk" : "origin",
    minor: 1,
    fields,
    framing,
    close: false,
    host,
    upgrade: websocket ? "websocket" : undefined,
    expectContinue,
  };
}

function sensitiveOf(headers: IncomingHttpHeaders): readonly string[] {
  return Reflect.get(headers, sensitiveHeaders) ?? [];
}

/** In whole, then the rest of the request is given up. */
function say(stream: ServerHttp2Stream, answer: Answer): void {
  const framing = { kind: "length", length: answer.body.length } as const;
  const options = { endStream: endsWithHead(framing), sendDate: false };
  stream.respond(renderH2Response(headOf(answer), framing), options);
  stream.end(answer.body);
  stream.once("finish", () => setImmediate(() => stream.close(NGHTTP2_NO_ERROR)));
  stream.resume();
}

function ignore(): void {}
