/** How much of what a client may do for free it has left in this minute: a leaking bucket. Pure. */

const MINUTE_MS = 60_000;

export class Budget {
  readonly #perMinute: number;
  #left: number;
  #at: number;

  constructor(perMinute: number, now: number) {
    this.#perMinute = perMinute;
    this.#left = perMinute;
    this.#at = now;
  }

  /** False: it is used up. `now`: monotonic milliseconds. */
  spend(now: number): boolean {
    const regained = ((now - this.#at) * this.#perMinute) / MINUTE_MS;
    this.#left = Math.min(this.#perMinute, this.#left + regained) - 1;
    this.#at = now;
    return this.#left >= 0;
  }

  /** Gives one back. */
  earn(): void {
    if (this.#left < this.#perMinute) this.#left += 1;
  }
}
