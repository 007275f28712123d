/** What is under way and must be decided again when the policy changes. Pure. */

import { type Enrolled, Roster } from "./roster.ts";

export interface Live<P> extends Enrolled {
  /** Whether `policy` still allows it. */
  holds(policy: P): boolean;
  /** Ends it at once. */
  cut(): void;
}

export class LiveSet<P> {
  readonly #entries = new Roster<Live<P>>();

  get size(): number {
    return this.#entries.size;
  }

  add(entry: Live<P>): void {
    this.#entries.add(entry);
  }

  remove(entry: Live<P>): void {
    this.#entries.remove(entry);
  }

  /** Cuts whatever `policy` no longer allows; returns how many. */
  recheck(policy: P): number {
    let cut = 0;
    this.#entries.each((entry) => {
      if (entry.holds(policy)) return;
      this.#entries.remove(entry);
      entry.cut();
      cut += 1;
    });
    return cut;
  }

  /** Cuts everything. */
  clear(): void {
    this.#entries.each((entry) => {
      this.#entries.remove(entry);
      entry.cut();
    });
  }
}
