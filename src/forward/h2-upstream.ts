/** One stream of an upstream HTTP/2 connection: a request out, its answer back. */
import {
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  constants,
  sensitiveHeaders,
} from "node:http2";
import { type Ending, watchEnd } from "../base/genuine-end.ts";
import { endClosed, own, readBody, type StreamEvent, type StreamOwner } from "../base/stream-owner.ts";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { FieldLines, Framing, IpAddress, RequestHead } from "../model/exchange.ts";
import { asFailure, Failure } from "../model/failure.ts";
import type { OutboundEvents, Raw, Upstream } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import { isGrpc } from "../wire/grpc.ts";
import { type Pairs, readTrailers, trailersOf } from "../wire/h2-fields.ts";
import { isUpgrade, renderH2Request } from "../wire/h2-request.ts";
import { endsWithHead, readH2Response } from "../wire/h2-response.ts";

/** What a stream needs of the session that it is on. */
export interface UpstreamSession {
  readonly peer: IpAddress | undefined;
  readonly websockets: boolean;
  /** The connection itself is gone, so what a stream says of its end is made up. */
  readonly lost: boolean;
  request(pairs: string[], options: ClientSessionRequestOptions): ClientHttp2Stream;
  release(): void;
  refused(stream: number | undefined): boolean;
}

const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
const { NGHTTP2_REFUSED_STREAM } = constants;

const WITHOUT_BODY: readonly StreamEvent[] = ["headers", "response", "trailers"];
const WITH_BODY: readonly StreamEvent[] = [...WITHOUT_BODY, "drain", "wantTrailers"];

export class Http2Upstream implements Upstream, Expiring, StreamOwner {
  readonly protocol = "h2";
  readonly reused: boolean;
  deadline = Number.POSITIVE_INFINITY;
  slot: number | undefined = undefined;
  readonly #session: UpstreamSession;
  readonly #around: { readonly limits: Limits; readonly deadlines: Deadlines };
  #stream: ClientHttp2Stream | undefined = undefined;
  #ending: Ending = { genuine: false };
  #events: OutboundEvents | undefined = undefined;
  #method = "";
  #longLived = false;
  /** A WebSocket: each side ends for itself. */
  #extended = false;
  /** The upstream ended its side of one. */
  #ended = false;
  /** Milliseconds that the upstream may be silent now. */
  #patience = 0;
  #interim = 0;
  #answered = false;
  /** Bytes of the answer that its Content-Length still promises. */
  #owed: number | undefined = undefined;
  #sent = false;
  #released = false;
  #trailers: FieldLines = [];
  #responseTrailers: FieldLines = [];

  constructor(
    session: UpstreamSession,
    reused: boolean,
    around: { readonly limits: Limits; readonly deadlines: Deadlines },
  ) {
    this.#session = session;
    this.reused = reused;
    this.#around = around;
  }

  get websockets(): boolean {
    return this.#session.websockets;
  }

  get peer(): IpAddress | undefined {
    return this.#session.peer;
  }

  send(head: RequestHead, framing: Framing, events: OutboundEvents): void {
    const { limits, deadlines } = this.#around;
    this.#events = events;
    this.#method = head.method;
    this.#extended = isUpgrade(head.fields);
    this.#longLived = this.#extended || isGrpc(head.fields);
    this.#patience = this.#longLived ? limits.tunnel_idle_timeout : limits.response_timeout;
    this.#touch();
    deadlines.add(this);
    const endStream = endsWithHead(framing);
    this.#sent = endStream;
    try {
      const pairs = renderH2Request(head, framing);
      const { sensitive = [] } = head;
      if (sensitive.length > 0) Object.assign(pairs, { [sensitiveHeaders]: [...sensitive] });
      this.#listen(this.#session.request(pairs, { endStream, waitForTrailers: !endStream }));
    } catch (error) {
      // The session went in the same turn: nothing was sent.
      queueMicrotask(() => this.#fail(error instanceof Failure ? error : gone(undefined), "unprocessed"));
    }
  }

  write(bytes: Buffer): boolean {
    const stream = this.#stream;
    if (this.#sent || stream === undefined || stream.closed || stream.destroyed) return true;
    this.#touch();
    return stream.write(bytes);
  }

  end(trailers: FieldLines): void {
    if (this.#sent) return;
    this.#sent = true;
    this.#trailers = trailers;
    if (!this.#answered) this.#touch();
    if (this.#ended) this.#events = undefined;
    this.#stream?.end();
  }

  pause(): void {
    this.deadline = Number.POSITIVE_INFINITY;
    this.#stream?.pause();
  }

  resume(): void {
    if (this.#events === undefined) return;
    this.#touch();
    this.#stream?.resume();
  }

  abort(reset: number = NGHTTP2_CANCEL): void {
    this.#events = undefined;
    this.#close(reset);
  }

  takeOver(): Raw {
    throw new Failure("E_INTERNAL", "gate", "A stream does not leave HTTP/2");
  }

  destroy(): void {
    this.abort();
  }

  expired(): void {
    this.#close(NGHTTP2_CANCEL);
    this.#fail(new Failure("E_TIMEOUT", "upstream", "The upstream took too long to answer"), false);
  }

  // --- StreamOwner ---

  onInterim(pairs: Pairs): void {
    this.#guard(() => this.#inform(pairs));
  }

  onResponse(pairs: Pairs, flags: number, fields: object): void {
    const sensitive: readonly string[] | undefined = Reflect.get(fields, sensitiveHeaders);
    this.#guard(() => this.#begin(pairs, flags, sensitive));
  }

  onTrailers(pairs: Pairs): void {
    this.#guard(() => {
      this.#responseTrailers = readTrailers(pairs, this.#around.limits, "upstream");
    });
  }

  onData(bytes: Buffer): void {
    if (this.#events === undefined) return;
    this.#touch();
    if (this.#owed !== undefined) this.#owed -= bytes.length;
    this.#events.data(bytes);
  }

  onEnd(): void {
    const events = this.#events;
    if (events === undefined || this.#ended || !this.#answered || !this.#isWhole()) return;
    this.#ended = this.#extended && !this.#sent;
    if (this.#ended) {
      events.end(this.#responseTrailers);
      return;
    }
    this.#events = undefined;
    events.end(this.#responseTrailers);
    // An answer that came before the request was whole: nobody reads the rest.
    if (!this.#sent) this.#close(NGHTTP2_CANCEL);
  }

  onDrain(): void {
    this.#events?.drained();
  }

  onWantTrailers(): void {
    const stream = this.#stream;
    // A reset ends the writable side too; only the end that we gave it may become END_STREAM.
    if (!this.#sent || stream === undefined || stream.closed || stream.destroyed) return;
    stream.sendTrailers(trailersOf(this.#trailers));
  }

  onClose(): void {
    this.#release();
    if (this.#events === undefined) return;
    const stream = this.#stream;
    const code = stream?.rstCode ?? NGHTTP2_NO_ERROR;
    // Without an id it never left.
    const id = stream?.id;
    const refused = code === NGHTTP2_REFUSED_STREAM || id === undefined || this.#session.refused(id);
    this.#fail(gone(this.#told(code)), refused && !this.#answered ? "unprocessed" : !this.#answered);
  }

  // --- Internal ---

  #touch(): void {
    this.deadline = this.#around.deadlines.now() + this.#patience;
  }

  #listen(stream: ClientHttp2Stream): void {
    this.#stream = stream;
    this.#ending = watchEnd(stream, false);
    own(stream, this, this.#sent ? WITHOUT_BODY : WITH_BODY);
    readBody(stream);
  }

  /** What the upstream sends must not pass unless it can be read. */
  #guard(step: () => void): void {
    if (this.#events === undefined) return;
    try {
      step();
    } catch (error) {
      this.#close(constants.NGHTTP2_PROTOCOL_ERROR);
      this.#fail(asFailure(error, "The response could not be read"), false);
    }
  }

  #inform(pairs: Pairs): void {
    const { limits } = this.#around;
    this.#interim += 1;
    if (this.#interim > limits.interim_responses) {
      throw new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The upstream sent too many interim responses");
    }
    this.#events?.informed(readH2Response(pairs, false, this.#method, limits).head);
  }

  #begin(pairs: Pairs, flags: number, sensitive: readonly string[] = []): void {
    const { limits } = this.#around;
    const whole = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const { head, framing } = readH2Response(pairs, whole, this.#method, limits);
    this.#answered = true;
    this.#owed = framing.kind === "length" ? framing.length : undefined;
    if (!this.#longLived) this.#patience = limits.progress_timeout;
    this.#touch();
    this.#events?.head({ ...head, sensitive }, framing);
  }

  /**
   * END_STREAM was sent; or a reset without an error came after as many bytes as were promised, which is how a
   * server on Node ends a large answer to a request that it did not read.
   */
  #isWhole(): boolean {
    return this.#ending.genuine || (this.#owed === 0 && this.#stream?.rstCode === NGHTTP2_NO_ERROR);
  }

  /** What the client is told of the code. Of a stream whose connection broke it says nothing. */
  #told(code: number): number | undefined {
    if (this.#session.lost) return undefined;
    // In mid-answer it would pass for an end; a WebSocket says itself where it ends.
    return code === NGHTTP2_NO_ERROR && !this.#extended ? NGHTTP2_INTERNAL_ERROR : code;
  }

  #fail(failure: Failure, untouched: boolean | "unprocessed"): void {
    const events = this.#events;
    this.#events = undefined;
    if (this.#stream === undefined) this.#release();
    events?.failed(failure, untouched);
  }

  #close(code: number): void {
    const stream = this.#stream;
    if (stream === undefined) this.#release();
    else if (!stream.destroyed) {
      if (!stream.closed) stream.close(code);
      // What was read and not taken must not keep a closed stream alive.
      stream.resume();
      endClosed(stream);
    }
  }

  #release(): void {
    if (this.#released) return;
    this.#released = true;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
    this.#session.release();
  }
}

function gone(reset: number | undefined): Failure {
  const message = "The upstream broke off the exchange";
  return new Failure("E_UPSTREAM_PROTOCOL", "upstream", message, reset === undefined ? {} : { reset });
}
