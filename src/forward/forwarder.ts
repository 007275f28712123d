/** The room that opens connections outwards: resolve, vet, dial, secure, pool. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Deadlines } from "../model/deadline.ts";
import type { Denial, Dialable } from "../model/decision.ts";
import type { Destination, IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Refused, Route } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";
import { dial } from "./dial.ts";
import { Http1Upstream } from "./http1-upstream.ts";
import { UpstreamPool } from "./pool.ts";
import type { Resolver } from "./resolve.ts";
import type { UpstreamTls } from "./upstream-tls.ts";

export interface ForwarderParts {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly resolver: Resolver;
  readonly tls: UpstreamTls;
  /** Milliseconds that resolving, dialling and securing one connection took. */
  readonly onConnected: (ms: number) => void;
}

export type Acquired<T> = { readonly kind: "ready"; readonly upstream: T } | Refused;

/** Sessions kept for resumption; one for each pool key. */
const SESSIONS = 1_000;
/** RFC 8305 section 5. */
const STAGGER_MS = 250;

export class Forwarder {
  readonly #parts: ForwarderParts;
  readonly #pool: UpstreamPool;
  readonly #sessions = new Map<string, Buffer>();

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    this.#pool = new UpstreamPool(parts.limits);
  }

  /** An idle connection of the route's pool, at once; undefined where there is none. */
  reuse(route: Route): Http1Upstream | undefined {
    return this.#pool.take(route.poolKey);
  }

  /** A new connection, ready for a request. Rejects with a Failure of the upstream's. */
  async connect(route: Route, signal: AbortSignal): Promise<Acquired<Http1Upstream>> {
    const started = performance.now();
    const opened = await this.open(route, signal);
    if (opened.kind === "refused") return opened;
    const { scheme } = route.permit;
    const socket = scheme === "https" ? await this.#secure(opened.upstream, route, signal) : opened.upstream;
    this.#parts.onConnected(performance.now() - started);
    const { limits, deadlines } = this.#parts;
    const upstream = new Http1Upstream(socket, route.poolKey, { limits, deadlines, home: this.#pool });
    this.#pool.adopt(upstream);
    return { kind: "ready", upstream };
  }

  /** A bare TCP connection to a vetted address: for tunnels, and what `connect` builds on. */
  async open(route: Route, signal: AbortSignal): Promise<Acquired<Socket>> {
    const { destination } = route.permit;
    const addresses = await this.#resolve(destination, signal);
    const vetted: Dialable[] = [];
    let refusal: Denial | undefined;
    for (const address of addresses) {
      const decision = route.guard(address);
      if (decision.verdict === "allow") vetted.push(decision.dialable);
      else refusal ??= decision;
    }
    if (vetted.length === 0) {
      if (refusal !== undefined) return { kind: "refused", denial: refusal };
      throw new Failure("E_RESOLVE", "upstream", "The name has no address");
    }
    const timeoutMs = this.#parts.limits.connect_timeout;
    const upstream = await dial(vetted, { timeoutMs, signal, stagger: STAGGER_MS });
    return { kind: "ready", upstream };
  }

  /** Another takes its place: what is under way ends as it would, and nothing is kept after it. */
  retire(): void {
    this.#pool.retire();
    this.#sessions.clear();
  }

  close(): void {
    this.#pool.retire();
    this.#pool.destroy();
    this.#parts.resolver.close();
  }

  async #resolve(destination: Destination, signal: AbortSignal): Promise<readonly IpAddress[]> {
    return destination.kind === "address"
      ? [destination.address]
      : this.#parts.resolver.resolve(destination.host, signal);
  }

  #secure(socket: Socket, route: Route, signal: AbortSignal): Promise<TLSSocket> {
    const { destination } = route.permit;
    const session = this.#sessions.get(route.poolKey);
    return this.#parts.tls.secure(socket, destination, {
      timeoutMs: this.#parts.limits.connect_timeout,
      alpn: ["http/1.1"],
      signal,
      ...(session === undefined ? {} : { session }),
      onSession: (fresh) => this.#keepSession(route.poolKey, fresh),
    });
  }

  #keepSession(key: string, session: Buffer): void {
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    if (this.#sessions.size <= SESSIONS) return;
    const oldest = this.#sessions.keys().next().value;
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }
}
