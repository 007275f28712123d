/** Two connections made one: bytes both ways, unread, with back-pressure and half-close. */
import type { Duplex } from "node:stream";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import { Failure } from "../model/failure.ts";
import type { Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";

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

/** `client.early` goes to the upstream first, and `upstream.early` to the client. */
export function splice(
  client: Raw,
  upstream: Raw,
  around: { readonly limits: Limits; readonly deadlines: Deadlines },
): Splice {
  const joined = new Joined(client.socket, upstream.socket, around);
  joined.begin(client.early, upstream.early);
  return joined;
}

class Joined implements Splice, Expiring {
  readonly done: Promise<Spliced>;
  deadline: number;
  readonly #client: Duplex;
  readonly #upstream: Duplex;
  readonly #around: { readonly limits: Limits; readonly deadlines: Deadlines };
  #resolve: (spliced: Spliced) => void = () => {};
  readonly #lastMoment: number;
  #bytesOut = 0;
  #bytesIn = 0;
  #open = 2;
  #over = false;

  constructor(
    client: Duplex,
    upstream: Duplex,
    around: { readonly limits: Limits; readonly deadlines: Deadlines },
  ) {
    this.#client = client;
    this.#upstream = upstream;
    this.#around = around;
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
      this.#bytesOut += bytes.length;
    });
    this.#join(this.#upstream, this.#client, (bytes) => {
      this.#bytesIn += bytes.length;
    });
    if (clientEarly.length > 0) this.#client.emit("data", clientEarly);
    if (upstreamEarly.length > 0) this.#upstream.emit("data", upstreamEarly);
    this.#client.resume();
    this.#upstream.resume();
  }

  cut(failure: Failure): void {
    this.#stop(failure);
  }

  expired(): void {
    this.#stop(new Failure("E_TIMEOUT", "client", "The tunnel was idle, or open, for too long"));
  }

  #stop(failure: Failure | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#around.deadlines.remove(this);
    this.#client.destroy();
    this.#upstream.destroy();
    this.#resolve({ bytesOut: this.#bytesOut, bytesIn: this.#bytesIn, failure });
  }

  #join(from: Duplex, to: Duplex, count: (bytes: Buffer) => void): void {
    from.on("data", (bytes: Buffer) => {
      count(bytes);
      this.#touch();
      if (!to.destroyed && !to.write(bytes)) from.pause();
    });
    to.on("drain", () => from.resume());
    from.once("end", () => {
      if (!to.destroyed) to.end();
      this.#open -= 1;
      // Both have said all they will; what is still in the buffers is flushed before the sockets close.
      if (this.#open === 0) this.#finish();
    });
    // A reset in one direction must not look like an end in the other: both go down together.
    from.on("error", () => this.#stop(undefined));
    from.once("close", () => {
      if (this.#open > 0) this.#stop(undefined);
    });
  }

  #finish(): void {
    this.#over = true;
    this.#around.deadlines.remove(this);
    this.#resolve({ bytesOut: this.#bytesOut, bytesIn: this.#bytesIn, failure: undefined });
  }

  #touch(): void {
    const idle = this.#around.deadlines.now() + this.#around.limits.tunnel_idle_timeout;
    this.deadline = Math.min(idle, this.#lastMoment);
  }
}
