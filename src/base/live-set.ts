/** What is under way and must be decided again when the policy changes. Pure. */

export interface Live<P> {
  /** Whether `policy` still allows it. */
  holds(policy: P): boolean;
  /** Ends it at once. */
  cut(): void;
}

export class LiveSet<P> {
  readonly #entries = new Set<Live<P>>();

  get size(): number {
    return this.#entries.size;
  }

  add(entry: Live<P>): void {
    this.#entries.add(entry);
  }

  remove(entry: Live<P>): void {
    this.#entries.delete(entry);
  }

  /** Cuts whatever `policy` no longer allows; returns how many. */
  recheck(policy: P): number {
    let cut = 0;
    for (const entry of [...this.#entries]) {
      if (entry.holds(policy)) continue;
      this.#entries.delete(entry);
      entry.cut();
      cut += 1;
    }
    return cut;
  }

  /** Cuts everything. */
  clear(): void {
    const entries = [...this.#entries];
    this.#entries.clear();
    for (const entry of entries) entry.cut();
  }
}
