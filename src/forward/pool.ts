/** Idle upstream connections, kept by key; the one used last is used first, so that extras expire. */
import { Roster, type Seat } from "../base/roster.ts";
import type { Limits } from "../model/limits.ts";
import type { Http1Upstream, UpstreamHome } from "./http1-upstream.ts";
import type { IdleBook } from "./idle-book.ts";

export class UpstreamPool implements UpstreamHome {
  readonly #idle = new Map<string, Http1Upstream[]>();
  readonly #all = new Roster<Seat<Http1Upstream>>();
  #retired = false;
  readonly #limits: Pick<Limits, "pool_connections">;
  readonly #book: IdleBook;

  /** `limits` is read at each use, so its properties may change. */
  constructor(limits: Pick<Limits, "pool_connections">, book: IdleBook) {
    this.#limits = limits;
    this.#book = book;
  }

  adopt(upstream: Http1Upstream): void {
    this.#all.add(upstream.seat);
  }

  /** One of `key`, or one of `freshKey`, which from then on belongs to `key`. */
  take(key: string, freshKey: string): Http1Upstream | undefined {
    const upstream = this.#takeOf(key) ?? this.#takeOf(freshKey);
    if (upstream !== undefined) upstream.poolKey = key;
    return upstream;
  }

  idle(upstream: Http1Upstream, keepMs: number): void {
    const idle = this.#idle.get(upstream.poolKey);
    if (this.#retired || keepMs === 0 || (idle?.length ?? 0) >= this.#limits.pool_connections) {
      upstream.destroy();
      return;
    }
    if (idle === undefined) this.#idle.set(upstream.poolKey, [upstream]);
    else idle.push(upstream);
    this.#book.add(upstream);
  }

  closed(upstream: Http1Upstream): void {
    this.#all.remove(upstream.seat);
    this.#book.remove(upstream);
    const idle = this.#idle.get(upstream.poolKey);
    if (idle === undefined) return;
    const at = idle.indexOf(upstream);
    if (at >= 0) idle.splice(at, 1);
    if (idle.length === 0) this.#idle.delete(upstream.poolKey);
  }

  /** Closes what idles and keeps nothing from now on. */
  retire(): void {
    this.#retired = true;
    for (const idle of [...this.#idle.values()]) for (const upstream of [...idle]) upstream.destroy();
  }

  #takeOf(key: string): Http1Upstream | undefined {
    const idle = this.#idle.get(key);
    while (idle !== undefined) {
      const upstream = idle.pop();
      if (upstream === undefined) return undefined;
      this.#book.remove(upstream);
      if (upstream.usable) return upstream;
      upstream.destroy();
    }
    return undefined;
  }

  /** Closes everything. */
  destroy(): void {
    this.#all.each(({ holder }) => holder.destroy());
  }
}
