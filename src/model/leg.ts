/** What `forward/` is asked to do, and what came of it. Types only. */
import type { AddressDecision, Denial, Permit } from "./decision.ts";
import type { FieldLines, Framing, IpAddress, RequestHead, ResponseHead } from "./exchange.ts";
import type { Failure } from "./failure.ts";
import type { HttpVersion } from "./inbound.ts";

/** Where to connect, with the proofs. */
export interface Route {
  readonly permit: Permit;
  /** Asked about every resolved address; only what it allows is dialled. */
  readonly guard: (address: IpAddress) => AddressDecision;
  /** Upstream connections are shared within one key: sandbox, policy generation and secrets are in it. */
  readonly poolKey: string;
  /** The same without the secrets: a connection that carried nothing yet is kept under it until a route takes it. */
  readonly freshKey: string;
  /** What the upstream is offered, in the client's order. */
  readonly alpn: readonly HttpVersion[];
}

/** One request, ready to leave. */
export interface Leg {
  readonly head: RequestHead;
  readonly framing: Framing;
  /** A WebSocket is asked for: a valid 101 may end HTTP. */
  readonly upgrade: boolean;
  /** `Expect: 100-continue`: the client waits for a word before it sends the body. */
  readonly expectContinue: boolean;
  readonly response: (head: ResponseHead) => ResponseHead;
  readonly requestTrailers: (trailers: FieldLines) => FieldLines;
  readonly responseTrailers: (trailers: FieldLines) => FieldLines;
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

export type Refused = { readonly kind: "refused"; readonly denial: Denial };
