/** One coarse clock for every connection, so that a step costs a store and not a timer. Pure: it is told the time. */
import type { Deadlines, Expiring } from "../model/deadline.ts";
import { Roster } from "./roster.ts";

export interface TickingDeadlines extends Deadlines {
  /** Moves the clock on and wakes what has expired. Milliseconds, monotonic. */
  tick(now: number): void;
}

export function createDeadlines(start: number): TickingDeadlines {
  const entries = new Roster<Expiring>();
  let current = start;
  return {
    now: () => current,
    add: (entry) => entries.add(entry),
    remove: (entry) => void entries.remove(entry),
    tick(now) {
      current = now;
      entries.each((entry) => {
        if (entry.deadline > now) return;
        // Once: whoever is woken and still wants a deadline sets another.
        entry.deadline = Number.POSITIVE_INFINITY;
        entry.expired();
      });
    },
  };
}
