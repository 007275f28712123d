/** One stream of a client's HTTP/2 connection: a request, and the answer to it. */
import { constants, type ServerHttp2Stream, sensitiveHeaders } from "node:http2";
import { type Ending, watchEnd } from "../base/genuine-end.ts";
import {
  endClosed,
  listen,
  own,
  readBody,
  type StreamEvent,
  type StreamOwner,
} from "../base/stream-owner.ts";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { FieldLines, Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import { CLIENT_LEFT, Failure } from "../model/failure.ts";
import type { Inbound, InboundEvents, Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import { isGrpc } from "../wire/grpc.ts";
import { readTrailers, trailersOf } from "../wire/h2-fields.ts";
import type { H2Request } from "../wire/h2-request.ts";
import { endsWithHead, renderH2Response } from "../wire/h2-response.ts";

/** What a stream tells the connection that it is on. */
export interface StreamHost {
  /** A piece of a body moved. */
  moved(): void;
  /** The client, or a fault of the client's, ended the stream before it was over. */
  broke(): void;
  /** The stream is closed. */
  released(): void;
}

export interface StreamSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly host: StreamHost;
}

export interface Incoming {
  readonly request: H2Request;
  /** END_STREAM came with the head. */
  readonly whole: boolean;
  /** Keys that the client marked as never to be indexed. */
  readonly sensitive: readonly string[];
}

const WITHOUT_BODY: readonly StreamEvent[] = ["aborted", "wantTrailers"];
const WITH_BODY: readonly StreamEvent[] = [...WITHOUT_BODY, "trailers"];
/** How often it is looked whether END_STREAM has left; there is no event for it. */
const DISMISS_MS = 5;
const { NGHTTP2_CANCEL, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;

export class Http2Inbound implements Inbound, Expiring, StreamOwner {
  readonly protocol = "h2";
  readonly head: RequestHead;
  readonly framing: Framing;
  responded: number | undefined = undefined;
  deadline = Number.POSITIVE_INFINITY;
  slot: number | undefined = undefined;
  readonly #stream: ServerHttp2Stream;
  readonly #around: StreamSurroundings;
  readonly #ending: Ending;
  /** Milliseconds without a byte of the body either way. */
  readonly #quiet: number;
  /** A WebSocket: each side ends for itself. */
  readonly #extended: boolean;
  #events: InboundEvents | undefined = undefined;
  #onLost: (() => void) | undefined = undefined;
  #lost: Failure | undefined = undefined;
  #requestTrailers: FieldLines = [];
  #trailers: FieldLines = [];
  #requestWhole: boolean;
  #headOnly = false;
  #blocked = false;
  /** The stream's drain is listened for. */
  #drains = false;
  /** Our side is over, the client's is not. */
  #ended = false;
  /** Nothing more is told or taken. */
  #over = false;

  constructor(stream: ServerHttp2Stream, incoming: Incoming, around: StreamSurroundings) {
    const { request, whole, sensitive } = incoming;
    const { method, target, fields, framing } = request;
    this.head = { method, target, minor: 1, fields, sensitive };
    this.framing = framing;
    this.#stream = stream;
    this.#around = around;
    this.#requestWhole = whole;
    this.#ending = watchEnd(stream, whole);
    const { limits, deadlines } = around;
    this.#extended = request.websocket;
    const longLived = request.websocket || isGrpc(fields);
    this.#quiet = longLived ? limits.tunnel_idle_timeout : limits.progress_timeout;
    deadlines.add(this);
    own(stream, this, whole ? WITHOUT_BODY : WITH_BODY);
    if (stream.closed) this.onAborted();
  }

  start(events: InboundEvents): void {
    this.#events = events;
    this.#onLost = undefined;
    if (this.#lost !== undefined) events.gone(this.#lost);
    else if (this.#requestWhole) events.end([]);
    else {
      this.#await();
      readBody(this.#stream);
    }
  }

  whenLost(callback: () => void): void {
    if (this.#lost === undefined) this.#onLost = callback;
    else callback();
  }

  /** A stream ends by itself; the connection stays. */
  closeAfter(): void {}

  pause(): void {
    if (this.#over) return;
    this.#stream.pause();
    this.deadline = Number.POSITIVE_INFINITY;
  }

  resume(): void {
    if (this.#over) return;
    this.#stream.resume();
    this.#await();
  }

  inform(head: ResponseHead): void {
    if (this.#over || this.responded !== undefined || this.#stream.closed) return;
    const { ":status": _, ...fields } = Object.fromEntries(pairsByName(head));
    this.#stream.additionalHeaders({ ":status": head.status, ...fields });
  }

  respond(head: ResponseHead, framing: Framing): void {
    if (this.#over || this.#stream.closed) return;
    const pairs = renderH2Response(head, framing);
    const { sensitive = [] } = head;
    if (sensitive.length > 0) Object.assign(pairs, { [sensitiveHeaders]: [...sensitive] });
    this.responded = head.status;
    this.#headOnly = endsWithHead(framing) || this.head.method === "HEAD";
    const endStream = this.#headOnly;
    // `sendDate`: a Date that the origin did not send is none of ours.
    const options = { endStream, waitForTrailers: !endStream, sendDate: false };
    this.#stream.respond(pairs, options);
  }

  write(bytes: Buffer): boolean {
    if (this.#over || this.#headOnly || this.#stream.closed) return true;
    this.#around.host.moved();
    if (this.#stream.write(bytes)) {
      if (this.deadline !== Number.POSITIVE_INFINITY) this.#await();
      return true;
    }
    if (!this.#drains) listen(this.#stream, "drain");
    this.#drains = true;
    this.#blocked = true;
    this.deadline = this.#in(this.#extended ? this.#quiet : this.#around.limits.progress_timeout);
    return false;
  }

  end(trailers: FieldLines): void {
    if (this.#over || this.responded === undefined) return;
    this.#leave();
    this.#trailers = trailers;
    if (!this.#headOnly) this.#stream.end();
    else if (!this.#requestWhole) setImmediate(this.#dismissRequest, NGHTTP2_NO_ERROR);
    this.#stream.resume();
  }

  endSide(trailers: FieldLines): void {
    if (this.#over || this.#ended) return;
    this.#ended = true;
    this.#trailers = trailers;
    if (!this.#headOnly) this.#stream.end();
  }

  abort(reset: number = NGHTTP2_INTERNAL_ERROR): void {
    if (this.#over) return;
    if (this.#ended) {
      this.#leave();
      this.#dismissRequest(reset);
    } else {
      this.#over = true;
      this.#close(reset);
    }
  }

  takeOver(_head: ResponseHead): Raw {
    throw new Failure("E_INTERNAL", "gate", "A stream does not leave HTTP/2");
  }

  expired(): void {
    const failure = new Failure("E_TIMEOUT", "client", "The client took too long", { reset: NGHTTP2_CANCEL });
    this.#break(failure);
    this.#close(NGHTTP2_CANCEL);
  }

  // --- StreamOwner ---

  onData(bytes: Buffer): void {
    if (this.#over) return;
    this.#around.host.moved();
    this.#await();
    this.#events?.data(bytes);
  }

  onEnd(): void {
    if (!this.#ending.genuine || this.#requestWhole) return;
    this.#requestWhole = true;
    if (this.#over) return;
    if (this.#ended) this.#leave();
    else this.#await();
    this.#events?.end(this.#requestTrailers);
  }

  onTrailers(pairs: readonly string[]): void {
    try {
      this.#requestTrailers = readTrailers(pairs, this.#around.limits, "client");
    } catch (error) {
      this.#break(error as Failure);
      this.#close(constants.NGHTTP2_PROTOCOL_ERROR);
    }
  }

  onDrain(): void {
    this.#blocked = false;
    if (this.#over) return;
    this.#await();
    this.#events?.drained();
  }

  onWantTrailers(): void {
    const stream = this.#stream;
    // A reset ends the writable side too; only the end that we gave it may become END_STREAM.
    if (!(this.#over || this.#ended) || stream.closed || stream.destroyed) return;
    stream.sendTrailers(trailersOf(this.#trailers));
    if (!this.#requestWhole && !this.#ended) setImmediate(this.#dismissRequest, NGHTTP2_NO_ERROR);
  }

  onAborted(): void {
    if (this.#over) return;
    const code = this.#stream.rstCode ?? NGHTTP2_NO_ERROR;
    // A reset without an error in mid-exchange would pass for an end (RFC 9113 section 8.1); a WebSocket says itself
    // where it ends.
    const cut = !this.#extended || this.#stream.session?.destroyed !== false;
    const reset = code === NGHTTP2_NO_ERROR && cut ? NGHTTP2_CANCEL : code;
    const left = { status: CLIENT_LEFT, reset };
    this.#break(new Failure("E_BAD_REQUEST", "client", "The client went away", left));
    this.#stream.resume();
    setImmediate(endClosed, this.#stream);
  }

  onClose(): void {
    this.onAborted();
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
    this.#around.host.released();
  }

  // --- Internal ---

  #in(ms: number): number {
    return this.#around.deadlines.now() + ms;
  }

  /** Bytes of the body are due, unless the client waits for us. */
  #await(): void {
    this.deadline = this.#requestWhole && !this.#blocked ? Number.POSITIVE_INFINITY : this.#in(this.#quiet);
  }

  /** RFC 9113 section 8.1: the answer is complete, so the rest of the request has no reader. */
  readonly #dismissRequest = (code: number): void => {
    const stream = this.#stream;
    if (this.#requestWhole || stream.closed || stream.destroyed) return;
    // RST_STREAM overtakes DATA: with END_STREAM still in the queue, the answer would look cut.
    if (stream.state.localClose === 1) this.#close(code);
    else setTimeout(this.#dismissRequest, DISMISS_MS, code).unref();
  };

  /** What was written has until the deadline to leave; its window may never open. */
  #leave(): void {
    this.#over = true;
    this.deadline = this.#in(this.#around.limits.progress_timeout);
  }

  #break(failure: Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.#around.host.broke();
    this.#lost = failure;
    this.#onLost?.();
    this.#events?.gone(failure);
  }

  #close(code: number): void {
    const stream = this.#stream;
    if (stream.destroyed) return;
    if (!stream.closed) stream.close(code);
    // What was read and not taken must not keep a closed stream alive.
    stream.resume();
    endClosed(stream);
  }
}

function pairsByName(head: ResponseHead): Map<string, string | string[]> {
  const pairs = renderH2Response(head, { kind: "none" });
  const byName = new Map<string, string | string[]>();
  for (let at = 0; at < pairs.length; at += 2) {
    const name = String(pairs[at]);
    const value = String(pairs[at + 1]);
    const before = byName.get(name);
    if (before === undefined) byName.set(name, value);
    else byName.set(name, typeof before === "string" ? [before, value] : [...before, value]);
  }
  return byName;
}
