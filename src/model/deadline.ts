/** One coarse clock for all connections: a property store instead of a timer for each step. */

export interface Expiring {
  /** Monotonic milliseconds; `Infinity`: none. Changed freely by its owner. */
  deadline: number;
  /** Whose it is to keep: the clock's. */
  slot?: number | undefined;
  /** Called once the deadline has passed; it may set another. */
  expired(): void;
}

export interface Deadlines {
  /** Monotonic milliseconds, as of the last tick or of `fresh()`. */
  now(): number;
  add(entry: Expiring): void;
  remove(entry: Expiring): void;
}
