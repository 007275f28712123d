/** Upstream HTTP/2 connections, kept by key; each serves many streams at once. */
import type { Limits } from "../model/limits.ts";
import type { Http2UpstreamSession, SessionHome } from "./h2-session.ts";
import type { Http2Upstream } from "./h2-upstream.ts";
import type { IdleBook } from "./idle-book.ts";

export class Http2Pool implements SessionHome {
  readonly #byKey = new Map<string, Http2UpstreamSession[]>();
  readonly #all = new Set<Http2UpstreamSession>();
  readonly #limits: Pick<Limits, "pool_connections">;
  readonly #book: IdleBook;
  #retired = false;

  /** `limits` is read at each use, so its properties may change. */
  constructor(limits: Pick<Limits, "pool_connections">, book: IdleBook) {
    this.#limits = limits;
    this.#book = book;
  }

  adopt(session: Http2UpstreamSession): void {
    this.#all.add(session);
    const sessions = this.#byKey.get(session.poolKey);
    if (sessions === undefined) this.#byKey.set(session.poolKey, [session]);
    else sessions.push(session);
    // Nothing is kept after the last exchange that is under way.
    if (this.#retired) session.retire();
  }

  /** A stream of a connection of `key`, or of an unused one of `freshKey`, which from then on belongs to `key`. */
  take(key: string, freshKey: string): Http2Upstream | undefined {
    const session = this.#find(key) ?? this.#claim(key, freshKey) ?? this.#findFull(key);
    return session?.take();
  }

  idles(session: Http2UpstreamSession): void {
    this.#book.add(session);
  }

  works(session: Http2UpstreamSession): void {
    this.#book.remove(session);
  }

  leaving(session: Http2UpstreamSession): void {
    this.#remove(session);
  }

  closed(session: Http2UpstreamSession): void {
    this.#remove(session);
    this.#book.remove(session);
    this.#all.delete(session);
  }

  /** Closes what idles and keeps nothing from now on. */
  retire(): void {
    this.#retired = true;
    this.#byKey.clear();
    for (const session of [...this.#all]) session.retire();
  }

  destroy(): void {
    for (const session of [...this.#all]) session.destroy();
    this.#all.clear();
  }

  #find(key: string): Http2UpstreamSession | undefined {
    return this.#byKey.get(key)?.find((session) => session.usable && !session.full);
  }

  #claim(key: string, freshKey: string): Http2UpstreamSession | undefined {
    if (key === freshKey) return undefined;
    const session = this.#byKey.get(freshKey)?.find((one) => one.usable && one.unused);
    if (session === undefined) return undefined;
    this.#remove(session);
    session.poolKey = key;
    this.adopt(session);
    return session;
  }

  /** Where there are enough connections already, a stream waits for its turn on the least busy one. */
  #findFull(key: string): Http2UpstreamSession | undefined {
    const sessions = this.#byKey.get(key)?.filter((session) => session.usable) ?? [];
    if (sessions.length < Math.max(1, this.#limits.pool_connections)) return undefined;
    return sessions.reduce((least, one) => (one.open < least.open ? one : least));
  }

  #remove(session: Http2UpstreamSession): void {
    const sessions = this.#byKey.get(session.poolKey);
    const at = sessions?.indexOf(session) ?? -1;
    if (sessions === undefined || at < 0) return;
    sessions.splice(at, 1);
    if (sessions.length === 0) this.#byKey.delete(session.poolKey);
  }
}
