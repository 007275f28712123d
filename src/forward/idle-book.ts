/** How many upstream connections may idle, in all and for each sandbox, whatever they speak; the oldest make room. */
import type { Limits } from "../model/limits.ts";

/** A connection that nobody uses now. Its end leads to `remove`. */
export interface Idler {
  /** Begins with the sandbox's id and a blank. */
  readonly poolKey: string;
  destroy(): void;
}

export type IdleLimits = Pick<Limits, "pool_connections_per_sandbox" | "pool_connections_total">;

export class IdleBook {
  readonly #limits: IdleLimits;
  /** By sandbox; the one that idles longest comes first. */
  readonly #idle = new Map<string, Set<Idler>>();
  #total = 0;

  /** `limits` is read at each use, so its properties may change. */
  constructor(limits: IdleLimits) {
    this.#limits = limits;
  }

  add(idler: Idler): void {
    const sandbox = sandboxOf(idler);
    let own = this.#idle.get(sandbox);
    if (own === undefined) {
      own = new Set();
      this.#idle.set(sandbox, own);
    }
    own.add(idler);
    this.#total += 1;
    if (own.size > this.#limits.pool_connections_per_sandbox) this.#close(own);
    // Whoever has most of them pays, so that nobody takes the room of all others.
    if (this.#total > this.#limits.pool_connections_total) this.#close(this.#largest());
  }

  /** Minds none that does not idle. */
  remove(idler: Idler): void {
    const sandbox = sandboxOf(idler);
    const own = this.#idle.get(sandbox);
    if (own?.delete(idler) !== true) return;
    this.#total -= 1;
    if (own.size === 0) this.#idle.delete(sandbox);
  }

  #largest(): Set<Idler> {
    let largest = new Set<Idler>();
    for (const own of this.#idle.values()) if (own.size > largest.size) largest = own;
    return largest;
  }

  #close(own: Set<Idler>): void {
    const [oldest] = own;
    if (oldest === undefined) return;
    this.remove(oldest);
    oldest.destroy();
  }
}

function sandboxOf({ poolKey }: Idler): string {
  return poolKey.slice(0, poolKey.indexOf(" "));
}
