/** What this room hands over, and what a connection of either HTTP needs of the rest. Types only. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Claims, Door } from "../model/arrival.ts";
import type { Deadlines } from "../model/deadline.ts";
import type { Failure } from "../model/failure.ts";
import type { Inbound, Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import type { Turn } from "../model/turn.ts";
import type { ParsedRequest } from "../wire/request-head.ts";
import type { Answer } from "./refusal.ts";

export interface Arrival {
  readonly request: ParsedRequest;
  readonly claims: Claims;
  readonly door: Door;
  readonly inbound: Inbound;
  /** The TCP socket that the connection runs on. */
  readonly transport: Socket;
}

/** A request for a destination, whatever protocol it came in: what is needed to ask who wants what. */
export type Asking = Pick<Arrival, "claims" | "door" | "inbound" | "transport">;

/** A connection that may be looked into or relayed: what is left of an arrival once nothing of HTTP is asked for. */
export type Passage = Pick<Arrival, "door" | "inbound" | "transport">;

export interface Http1Handlers {
  /** Called for each request, in order; the next follows when this one is answered. Must not throw. */
  request(arrival: Arrival): void;
  /** Not HTTP, or not in time: what to tell the client, if anything. */
  malformed(failure: Failure): Answer | undefined;
  closed(): void;
  /** The first byte is SOCKS5's: the connection is somebody else's from here. Absent: it is malformed HTTP. */
  socks?(raw: Raw): void;
}

export interface Http1Ends {
  /** Where plain HTTP is read and written. */
  readonly socket: Duplex;
  /** The TCP socket below it, or the same: only it can be reset. */
  readonly transport: Socket;
}

export interface Http1Surroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  /** While true, connections end after the answer that is under way. */
  readonly draining: () => boolean;
}
