/** What `forward/` is asked to do, and what came of it. Types only. */
import type { AddressDecision, Denial, HandOverDecision, Permit } from "./decision.ts";
import type { FieldLines, Framing, IpAddress, RequestHead, ResponseHead } from "./exchange.ts";
import type { Failure } from "./failure.ts";
import type { BodySink, HttpVersion } from "./inbound.ts";

/** Where to connect, with the proofs. */
export interface Route {
  readonly permit: Permit;
  /** Asked about every resolved address; only what it allows is dialled. */
  readonly guard: (address: IpAddress) => AddressDecision;
  /** Asked in its place where a parent proxy is to resolve the name; without it none is given away. */
  readonly handOver?: (() => HandOverDecision) | undefined;
  /** What the parent proxy is told of who we are; undefined where it asks for nothing. Read at each connection. */
  readonly parentAuth?: (() => Secret) | undefined;
  /** Upstream connections are shared within one key: sandbox, policy generation and secrets are in it. */
  readonly poolKey: string;
  /** The same without the secrets: a connection that carried nothing yet is kept under it until a route takes it. */
  readonly freshKey: string;
  /** Whom the gate is to an upstream that asks. */
  readonly identity?: ClientIdentity;
  /** What the upstream is offered, in the client's order. */
  readonly alpn: readonly HttpVersion[];
}

export type Secret = { readonly ok: true; readonly value: string } | { readonly ok: false };
/** A client certificate: one object as long as it does not change, so that whoever made something of it finds it again. */
export interface ClientIdentity {
  /** PEM; the chain may follow. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  readonly passphrase: string | undefined;
}

/** One request, ready to leave. */
export interface Leg {
  readonly head: RequestHead;
  readonly framing: Framing;
  /** A WebSocket is asked for: a valid 101 may end HTTP. */
  readonly upgrade: boolean;
  /** It is asked for in HTTP/2: a 2xx begins it (RFC 8441), and each side of its stream ends for itself. */
  readonly extended?: boolean;
  /** `Expect: 100-continue`: the client waits for a word before it sends the body. */
  readonly expectContinue: boolean;
  /** Interim heads and a 101; final ones too where there is no `answer`. */
  readonly response: (head: ResponseHead) => ResponseHead;
  /** The final head, how its body is framed from here on, and what happens to that. A Failure refuses the answer. */
  readonly answer?: ((head: ResponseHead, framing: Framing) => Answer) | undefined;
  /** What happens to the request's body, for which `framing` is right already. */
  readonly requestBody?: BodyStage | undefined;
  readonly requestTrailers: (trailers: FieldLines) => FieldLines;
  readonly responseTrailers: (trailers: FieldLines) => FieldLines;
}

export interface Answer {
  readonly head: ResponseHead;
  readonly framing: Framing;
  /** Absent: the body passes as it is. */
  readonly body?: BodyStage | undefined;
}

/** What one exchange keeps in memory, counted for its sandbox. */
export interface Room {
  /** False where the sandbox keeps too many bytes already; these are then not counted. */
  take(bytes: number): boolean;
  /** All that was taken. */
  release(): void;
}

/** Put between a body and where it goes: gives what to write to, and passes on to `next` what it made of it. */
export type BodyStage = (next: BodySink, events: StageEvents) => StagedBody;

/** `end` reaches `next` once everything before it did, in the same turn or later. */
export interface StagedBody extends BodySink {
  /** `next` takes more again. */
  drained(): void;
  /** The exchange is over: nothing more comes, and nothing more may go to `next`. */
  close(): void;
}

export interface StageEvents {
  /** After a `write` that gave false: more may come. */
  drained(): void;
  /** The exchange is broken off, so that neither side takes what it has for a whole body. */
  failed(failure: Failure): void;
}

export type Outcome =
  | ({ readonly kind: "relayed" } & Relayed)
  /** No byte of an answer came, on a connection that had been idle, or the upstream did not look: another try is safe. */
  | ({ readonly kind: "stale"; readonly failure: Failure } & Relayed)
  | ({ readonly kind: "failed"; readonly failure: Failure } & Relayed);

export interface Relayed {
  /** The upstream's final status; undefined where none came. */
  readonly status: number | undefined;
  /** Body bytes towards the upstream, and back from it. */
  readonly bytesOut: number;
  readonly bytesIn: number;
}

/** A connection to work with, or why policy has none. */
export type Acquired<T> = { readonly kind: "ready"; readonly upstream: T } | Refused;

export type Refused = { readonly kind: "refused"; readonly denial: Denial };
