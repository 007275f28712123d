/** Both ends of one exchange as the relay sees them: decoded messages, whatever the protocol on the wire. */
import type { Duplex } from "node:stream";
import type { FieldLines, Framing, IpAddress, RequestHead, ResponseHead } from "./exchange.ts";
import type { Failure } from "./failure.ts";

export type HttpVersion = "http/1.1" | "h2";

/** Takes a message's body, piece by piece. */
export interface BodySink {
  /** False: the caller stops until `drained`. */
  write(bytes: Buffer): boolean;
  /** Only a body that is genuinely whole may end. */
  end(trailers: FieldLines): void;
}

/** The client's side of one exchange, opened by `accept/`. */
export interface Inbound extends BodySink {
  /** In HTTP/2 an exchange is a stream: it can be reset alone, with a code. */
  readonly protocol: HttpVersion;
  readonly head: RequestHead;
  readonly framing: Framing;
  /** The status written so far, interim ones aside; undefined while the client has none. */
  readonly responded: number | undefined;
  /** Starts the request's body; called once. Without it the body is discarded with the connection. */
  start(events: InboundEvents): void;
  /** Before `start`: tells once that the client went away. */
  whenLost(callback: () => void): void;
  /** No further request is read after this answer. */
  closeAfter(): void;
  pause(): void;
  resume(): void;
  /** Sends an interim (1xx) response. */
  inform(head: ResponseHead): void;
  /** HTTP/2 alone: our side ends, and the client's goes on (RFC 9113 section 8.5). */
  endSide?(trailers: FieldLines): void;
  /** Starts the final response; its body goes to `write` and `end`. */
  respond(head: ResponseHead, framing: Framing): void;
  /** Breaks the exchange off so that the client cannot take what it has for a whole answer. `reset`: the HTTP/2 code. */
  abort(reset?: number): void;
  /** Answers with `head` (200 to CONNECT, 101) and leaves HTTP: what follows are the client's bytes. */
  takeOver(head: ResponseHead): Raw;
}

export interface InboundEvents {
  data(bytes: Buffer): void;
  end(trailers: FieldLines): void;
  drained(): void;
  /** The client went away, or broke the protocol, before the exchange was over. */
  gone(failure: Failure): void;
}

/** A connection that left HTTP. */
export interface Raw {
  readonly socket: Duplex;
  /** Bytes that arrived with the head; they come first. */
  readonly early: Buffer;
}

/** The upstream's side of one exchange, opened by `forward/`. */
export interface Outbound extends BodySink {
  send(head: RequestHead, framing: Framing, events: OutboundEvents): void;
  pause(): void;
  resume(): void;
  /** The request broke off, or its client went away: the upstream must not take it for whole. `reset`: the HTTP/2 code. */
  abort(reset?: number): void;
  /** After a 101. */
  takeOver(): Raw;
}

/** A way to the upstream that is ready for one request. */
export interface Upstream extends Outbound {
  readonly protocol: HttpVersion;
  /** The address that was dialled; undefined where the connection is gone already. */
  readonly peer: IpAddress | undefined;
  /** Whether its connection served another exchange before. */
  readonly reused: boolean;
  /** The upstream takes an extended CONNECT (RFC 8441). */
  readonly websockets: boolean;
  destroy(): void;
}

export interface OutboundEvents {
  informed(head: ResponseHead): void;
  head(head: ResponseHead, framing: Framing): void;
  data(bytes: Buffer): void;
  /** Of an extended CONNECT the upstream's side alone is over: what is said to it still passes, and it may yet fail. */
  end(trailers: FieldLines): void;
  drained(): void;
  /**
   * Nothing follows. `untouched`: no byte of an answer was seen, so another try is safe if the request is;
   * `unprocessed`: the upstream vouches for not having looked at it (RFC 9113 section 8.7).
   */
  failed(failure: Failure, untouched: boolean | "unprocessed"): void;
}
