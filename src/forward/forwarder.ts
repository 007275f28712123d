/** The room that opens connections outwards: resolve, vet, dial, secure, pool. */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Deadlines } from "../model/deadline.ts";
import type { Upstream } from "../model/inbound.ts";
import type { Acquired, Route } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";
import type { Turn } from "../model/turn.ts";
import { AlpnMemory, type Spoken } from "./alpn-memory.ts";
import type { Opened } from "./dial.ts";
import { Http2Pool } from "./h2-pool.ts";
import { type Http2UpstreamSession, openSession } from "./h2-session.ts";
import { Http1Upstream } from "./http1-upstream.ts";
import { IdleBook } from "./idle-book.ts";
import { openWay } from "./open.ts";
import type { Parent } from "./parent.ts";
import { UpstreamPool } from "./pool.ts";
import type { Resolver } from "./resolve.ts";
import { SharedStep } from "./shared-step.ts";
import type { UpstreamTls } from "./upstream-tls.ts";

export interface ForwarderParts {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  readonly resolver: Resolver;
  readonly tls: UpstreamTls;
  readonly parent?: Parent | undefined;
  /** Milliseconds that resolving, dialling and securing one connection took. */
  readonly onConnected: (ms: number) => void;
}

/** A connection that is ready, whatever it speaks. */
type Link =
  | { readonly protocol: "http/1.1"; readonly upstream: Http1Upstream }
  | { readonly protocol: "h2"; readonly session: Http2UpstreamSession };

/** Sessions kept for resumption; one for each pool key. */
const SESSIONS = 1_000;

export class Forwarder {
  readonly #parts: ForwarderParts;
  readonly #pool: UpstreamPool;
  readonly #h2: Http2Pool;
  readonly #alpn: AlpnMemory;
  readonly #sessions = new Map<string, Buffer>();
  /** Dials that may end in HTTP/2, by pool key: whoever comes meanwhile shares what they bring. */
  readonly #dialling = new Map<string, Promise<unknown>>();
  readonly #probes = new SharedStep<Acquired<Spoken>>();

  constructor(parts: ForwarderParts) {
    this.#parts = parts;
    const book = new IdleBook(parts.limits);
    this.#pool = new UpstreamPool(parts.limits, book);
    this.#h2 = new Http2Pool(parts.limits, book);
    this.#alpn = new AlpnMemory(parts.limits, () => parts.deadlines.now());
  }

  /** A way of the route's pool, at once; undefined where there is none. `fresh`: none that merely idled. */
  reuse(route: Route, fresh: boolean): Upstream | undefined {
    const { poolKey, freshKey } = route;
    const stream = offersH2(route) ? this.#h2.take(poolKey, freshKey) : undefined;
    return stream ?? (fresh ? undefined : this.#pool.take(poolKey, freshKey));
  }

  /** A new connection, ready for a request. Rejects with a Failure of the upstream's. */
  async connect(route: Route, signal: AbortSignal): Promise<Acquired<Upstream>> {
    const { poolKey, freshKey } = route;
    const pending = this.#dialling.get(poolKey);
    if (offersH2(route) && pending !== undefined) {
      await endOf(pending, signal);
      const stream = this.#h2.take(poolKey, freshKey);
      if (stream !== undefined) return { kind: "ready", upstream: stream };
    }
    const linked = await this.#link(route, poolKey, signal);
    if (linked.kind === "refused") return linked;
    const link = linked.upstream;
    return { kind: "ready", upstream: link.protocol === "h2" ? link.session.take() : link.upstream };
  }

  /** What the upstream was found to speak lately, given what the route offers. */
  recall(route: Route): Spoken | undefined {
    return this.#alpn.recall(alpnKey(route));
  }

  /** Connects to learn what the upstream speaks; the connection waits for the first request of the same place, and all who ask meanwhile wait for the one answer. */
  probe(route: Route, signal: AbortSignal): Promise<Acquired<Spoken>> {
    return this.#probes.join(alpnKey(route), signal, (shared) => this.#probe(route, shared));
  }

  async #probe(route: Route, signal: AbortSignal): Promise<Acquired<Spoken>> {
    const linked = await this.#link(route, route.freshKey, signal);
    if (linked.kind === "refused") return linked;
    const link = linked.upstream;
    if (link.protocol === "http/1.1") link.upstream.park();
    return { kind: "ready", upstream: spokenBy(link) };
  }

  /** A bare connection to a vetted address, or through the parent proxy: for tunnels, and what `connect` builds on. */
  open(route: Route, signal: AbortSignal): Promise<Acquired<Opened>> {
    return openWay(route, this.#parts, signal);
  }

  /** Another takes its place: what is under way ends as it would, and nothing is kept after it. */
  retire(): void {
    this.#pool.retire();
    this.#h2.retire();
    this.#sessions.clear();
  }

  close(): void {
    this.#pool.retire();
    this.#h2.retire();
    this.#pool.destroy();
    this.#h2.destroy();
    this.#parts.resolver.close();
  }

  #link(route: Route, key: string, signal: AbortSignal): Promise<Acquired<Link>> {
    const linking = this.#dialLink(route, key, signal);
    if (!offersH2(route) || this.#dialling.has(key)) return linking;
    this.#dialling.set(key, linking);
    const over = (): void => void this.#dialling.delete(key);
    linking.then(over, over);
    return linking;
  }

  async #dialLink(route: Route, key: string, signal: AbortSignal): Promise<Acquired<Link>> {
    const started = performance.now();
    const opened = await this.open(route, signal);
    if (opened.kind === "refused") return opened;
    const { scheme } = route.permit;
    const secured =
      scheme === "https" ? await this.#secure(opened.upstream.socket, route, signal) : undefined;
    const { peer } = opened.upstream;
    const { limits, deadlines, turn } = this.#parts;
    let link: Link;
    if (secured?.alpnProtocol === "h2") {
      const session = await openSession(secured, key, { limits, deadlines, home: this.#h2, peer }, signal);
      this.#h2.adopt(session);
      link = { protocol: "h2", session };
    } else {
      const around = { limits, deadlines, turn, home: this.#pool, peer };
      const upstream = new Http1Upstream(secured ?? opened.upstream.socket, key, around);
      this.#pool.adopt(upstream);
      link = { protocol: "http/1.1", upstream };
    }
    this.#parts.onConnected(performance.now() - started);
    if (offersH2(route)) this.#alpn.learn(alpnKey(route), spokenBy(link));
    return { kind: "ready", upstream: link };
  }

  #secure(socket: Socket, route: Route, signal: AbortSignal): Promise<TLSSocket> {
    const { destination } = route.permit;
    const session = this.#sessions.get(route.poolKey);
    return this.#parts.tls.secure(socket, destination, {
      timeoutMs: this.#parts.limits.connect_timeout,
      alpn: route.alpn,
      signal,
      identity: route.identity,
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

function offersH2({ alpn }: Route): boolean {
  return alpn.includes("h2");
}

function alpnKey({ freshKey, alpn }: Route): string {
  return `${freshKey} ${alpn.join()}`;
}

function spokenBy(link: Link): Spoken {
  return link.protocol === "h2"
    ? { protocol: "h2", websockets: link.session.websockets }
    : { protocol: "http/1.1", websockets: false };
}

/** Resolves when `pending` is over, however it ended. Rejects with the signal's reason. */
function endOf(pending: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abandon = (): void => reject(signal.reason);
    signal.addEventListener("abort", abandon, { once: true });
    const over = (): void => {
      signal.removeEventListener("abort", abandon);
      resolve();
    };
    pending.then(over, over);
  });
}
