/** Two connections made one: bytes both ways, unread, with back-pressure and half-close. */
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import { asFailure, Failure } from "../model/failure.ts";
import type { Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import type { Turn } from "../model/turn.ts";
import { TinyPieces } from "./tiny-pieces.ts";

export interface Spliced {
  readonly bytesOut: number;
  readonly bytesIn: number;
  /** Undefined where both sides ended of their own accord. */
  readonly failure: Failure | undefined;
}

export interface Splice {
  readonly done: Promise<Spliced>;
  cut(failure: Failure): void;
}

/**
 * Judges a client's first bytes, all that came so far, before any of them goes on: false where it takes more to say.
 * Throws where they may not pass.
 */
export type Admit = (bytes: Buffer) => boolean;

/** Larger writes are worth a wake-up each. */
const HELD_BYTES = 16_384;

export interface SpliceSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  /** Absent: everything passes. What the upstream says passes in any case. */
  readonly admit?: Admit;
}

/**
 * `client.early` goes to the upstream first, and `upstream.early` to the client. Where `admit` throws, `done` tells of
 * it and the client's connection is left open, for the last word.
 */
export function splice(client: Raw, upstream: Raw, around: SpliceSurroundings): Splice {
  const joined = new Joined(client.socket, upstream.socket, around);
  joined.begin(client.early, upstream.early);
  return joined;
}

class Joined implements Splice, Expiring {
  readonly done: Promise<Spliced>;
  deadline: number;
  readonly #client: Duplex;
  readonly #upstream: Duplex;
  readonly #around: SpliceSurroundings;
  #resolve: (spliced: Spliced) => void = () => {};
  readonly #lastMoment: number;
  #bytesOut = 0;
  #bytesIn = 0;
  /** Directions in which bytes may still come. */
  #open = 2;
  /** Sides that are not closed. */
  #sides = 2;
  #over = false;
  /** What the client sent while it was not clear whether it may pass. */
  #held: Buffer | undefined;
  /** When that must be clear. */
  #heldUntil = Number.POSITIVE_INFINITY;

  constructor(client: Duplex, upstream: Duplex, around: SpliceSurroundings) {
    this.#client = client;
    this.#upstream = upstream;
    this.#around = around;
    this.#held = around.admit === undefined ? undefined : Buffer.alloc(0);
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const { tunnel_lifetime } = around.limits;
    const now = around.deadlines.now();
    this.#lastMoment = tunnel_lifetime === 0 ? Number.POSITIVE_INFINITY : now + tunnel_lifetime;
    this.deadline = 0;
    this.#touch();
  }

  begin(clientEarly: Buffer, upstreamEarly: Buffer): void {
    this.#around.deadlines.add(this);
    this.#join(this.#client, this.#upstream, (bytes) => {
      this.#touch();
      const passing = this.#held === undefined ? bytes : this.#judge(this.#held, bytes);
      if (this.#held !== undefined) this.#hurry();
      this.#bytesOut += passing?.length ?? 0;
      return passing;
    });
    this.#join(this.#upstream, this.#client, (bytes) => {
      this.#touch();
      this.#bytesIn += bytes.length;
      return bytes;
    });
    // Before the early bytes, which may pause them again.
    this.#client.resume();
    this.#upstream.resume();
    if (clientEarly.length > 0) this.#client.emit("data", clientEarly);
    if (upstreamEarly.length > 0) this.#upstream.emit("data", upstreamEarly);
    // What happened before is not told again.
    if (this.#client.destroyed || this.#upstream.destroyed) this.#stop(undefined);
    if (this.#client.readableEnded) this.#end(this.#upstream);
    if (this.#upstream.readableEnded) this.#end(this.#client);
  }

  cut(failure: Failure): void {
    this.#stop(failure);
  }

  expired(): void {
    const late = this.#around.deadlines.now() >= this.#heldUntil;
    const message = late
      ? "The client sent no whole ClientHello in time"
      : "The tunnel was idle, or open, for too long";
    this.#stop(new Failure("E_TIMEOUT", "client", message));
  }

  #stop(failure: Failure | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#around.deadlines.remove(this);
    reset(this.#client);
    reset(this.#upstream);
    this.#settle(failure);
  }

  /** What may go on now; undefined: nothing yet, or never. */
  #judge(held: Buffer, bytes: Buffer): Buffer | undefined {
    const all = Buffer.concat([held, bytes]);
    try {
      if (this.#over || this.#around.admit?.(all) === false) this.#held = all;
      else {
        this.#held = undefined;
        this.#heldUntil = Number.POSITIVE_INFINITY;
        this.#touch();
        return all;
      }
    } catch (error) {
      this.#refuse(error);
    }
    return undefined;
  }

  /** The upstream hears nothing of it. */
  #refuse(error: unknown): void {
    this.#over = true;
    this.#around.deadlines.remove(this);
    this.#client.pause();
    reset(this.#upstream);
    this.#settle(asFailure(error, "Bytes could not be judged"));
  }

  #join(from: Duplex, to: Duplex, pass: (bytes: Buffer) => Buffer | undefined): void {
    const pieces = new TinyPieces(this.#around.turn, (bytes) => {
      if (to.destroyed || to.writableEnded) return;
      if (bytes.length <= HELD_BYTES) this.#around.turn.hold(to);
      if (!to.write(bytes)) from.pause();
    });
    from.on("data", (bytes: Buffer) => {
      const passing = pass(bytes);
      if (passing !== undefined) pieces.take(passing);
    });
    to.on("drain", () => from.resume());
    from.once("end", () => {
      pieces.flush();
      this.#end(to);
    });
    // A reset in one direction must not look like an end in the other: both go down together.
    from.on("error", () => this.#stop(undefined));
    from.once("close", () => {
      this.#sides -= 1;
      if (this.#open > 0) this.#stop(undefined);
      else if (this.#sides === 0) this.#around.deadlines.remove(this);
    });
  }

  /** One side has said all that it will. After both have, what is still in the buffers has until the deadline to leave. */
  #end(to: Duplex): void {
    if (this.#over) return;
    if (to === this.#upstream && this.#held !== undefined && this.#held.length > 0) {
      this.#refuse(
        new Failure("E_BAD_HELLO", "client", "The client closed before its ClientHello was whole"),
      );
      return;
    }
    this.#open -= 1;
    to.end();
    if (this.#open === 0) this.#settle(undefined);
  }

  #settle(failure: Failure | undefined): void {
    this.#resolve({ bytesOut: this.#bytesOut, bytesIn: this.#bytesIn, failure });
  }

  /** From its first byte on: bytes that trickle in buy no time. */
  #hurry(): void {
    const { deadlines, limits } = this.#around;
    this.#heldUntil = Math.min(this.#heldUntil, deadlines.now() + limits.handshake_timeout);
    this.#touch();
  }

  #touch(): void {
    const idle = this.#around.deadlines.now() + this.#around.limits.tunnel_idle_timeout;
    this.deadline = Math.min(idle, this.#lastMoment, this.#heldUntil);
  }
}

/** A FIN would make what was relayed so far look like all of it. TLS says so itself: no close_notify is sent. */
function reset(stream: Duplex): void {
  if (stream instanceof Socket && !(stream instanceof TLSSocket)) stream.resetAndDestroy();
  // At once: alone, the former waits for what is not sent yet, and for its FIN.
  stream.destroy();
}
