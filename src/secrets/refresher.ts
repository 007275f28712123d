/** A value that takes a while to be had: asked for once at a time, again before it expires, and not at once after a failure. */
import type { Reading } from "./secret-file.ts";

export interface Fetched {
  readonly value: string;
  /** Milliseconds for which it is good. */
  readonly lifetime: number;
}

export interface RefresherParts {
  /** Rejects with an error whose message says what is wrong, without any secret. */
  readonly fetch: () => Promise<Fetched>;
  /** Milliseconds, by any clock that does not go back. */
  readonly now: () => number;
  /** Told of each failure. */
  readonly failed?: (problem: string) => void;
}

export interface Refresher {
  /** At once. Where nothing is there yet, `whenKnown` asks for it; where it is about to expire, that is asked for here. */
  read(): Reading;
}

/** Refreshed when a quarter of its life is left, or five minutes. */
const AHEAD_MS = 300_000;
/** Not used any more in its last seconds: on its way it would expire. */
const MARGIN_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

interface Held {
  readonly reading: Reading;
  readonly staleAt: number;
  readonly endsAt: number;
}

export function createRefresher({ fetch, now, failed }: RefresherParts): Refresher {
  let held: Held | undefined;
  let underWay: Promise<void> | undefined;
  let pause = 0;
  let notBefore = Number.NEGATIVE_INFINITY;
  const untried: Reading = { ok: false, problem: "It was not asked for yet", whenKnown: ask, untried: true };
  let failure: Reading | undefined;
  /** The same, once it may be tried again. */
  let again: Reading | undefined;

  return { read };

  function read(): Reading {
    const time = now();
    return current(time) ?? missing(time);
  }

  function current(time: number): Reading | undefined {
    if (held === undefined || time >= held.endsAt) return undefined;
    if (time >= held.staleAt && time >= notBefore) void ask();
    return held.reading;
  }

  function missing(time: number): Reading {
    if (failure === undefined || again === undefined) return untried;
    return time >= notBefore || underWay !== undefined ? again : failure;
  }

  /** Never rejects; whoever comes while it is under way waits for the same. */
  function ask(): Promise<void> {
    underWay ??= fetch()
      .then(took, gaveUp)
      .finally(() => {
        underWay = undefined;
      });
    return underWay;
  }

  function took({ value, lifetime }: Fetched): void {
    const time = now();
    pause = 0;
    failure = undefined;
    // Where it is the same as before, so is the reading: nothing has changed.
    const same = held?.reading.ok === true && held.reading.value === value;
    const reading: Reading = same && held !== undefined ? held.reading : { ok: true, value };
    const endsAt = time + lifetime - Math.min(MARGIN_MS, lifetime / 10);
    held = { reading, staleAt: time + lifetime - Math.min(AHEAD_MS, lifetime / 4), endsAt };
  }

  function gaveUp(error: unknown): void {
    const problem = error instanceof Error ? error.message : "It could not be had";
    pause = Math.min(LONGEST_PAUSE_MS, pause === 0 ? FIRST_PAUSE_MS : pause * 2);
    notBefore = now() + pause;
    failure = { ok: false, problem };
    again = { ok: false, problem, whenKnown: ask };
    failed?.(problem);
  }
}
