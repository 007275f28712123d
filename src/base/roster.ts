/** Who is under way, in no order. Pure. */

/** One that is in at most one roster at a time. */
export interface Enrolled {
  /** Kept by its roster; `undefined`: in none. */
  slot?: number | undefined;
}

/** For one who is in another roster too. */
export interface Seat<T> extends Enrolled {
  readonly holder: T;
}

/**
 * A set for those that come and go thousands of times a second. A `Set` of them is dear: once its table is in V8's
 * old generation, each table that replaces that one is kept until the next full collection, with all that was in it.
 */
export class Roster<T extends Enrolled> {
  readonly #entries: T[] = [];

  get size(): number {
    return this.#entries.length;
  }

  add(entry: T): void {
    if (this.#holds(entry)) return;
    entry.slot = this.#entries.push(entry) - 1;
  }

  /** False where it was not in. */
  remove(entry: T): boolean {
    const { slot } = entry;
    if (slot === undefined || !this.#holds(entry)) return false;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) {
      this.#entries[slot] = last;
      last.slot = slot;
    }
    entry.slot = undefined;
    return true;
  }

  /**
   * Whoever is in from before until its turn is met; where others leave meanwhile, it may be met again, and so may one
   * that came meanwhile. Nobody is met who has left.
   */
  each(visit: (entry: T) => void): void {
    // From the end: whoever a removal moves out of a place that is still to be looked at goes to another such place.
    for (let at = this.#entries.length - 1; at >= 0; at -= 1) {
      const entry = this.#entries[at];
      if (entry !== undefined) visit(entry);
    }
  }

  #holds(entry: T): boolean {
    return entry.slot !== undefined && this.#entries[entry.slot] === entry;
  }
}

export function seatFor<T>(holder: T): Seat<T> {
  return { slot: undefined, holder };
}
