/** Plain number cells behind the metrics: counting is an addition, and labels appear at scrape time alone. */

/** One sample as prom-client prints and sums it. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Of a histogram: the name with its suffix. */
  readonly metricName?: string;
}

/** How many values a `rule` or a `sandbox` label may take; the rest share `other` (security case K07). */
export const LABEL_VALUES = 1_000;

const OTHER = "other";

/** Counts of one rule or sandbox. */
export interface Tally {
  allow: number;
  deny: number;
  injected: number;
  /** Exchanges whose answer held a secret. */
  scrubbed: number;
}

export interface Tallies {
  of(id: string): Tally;
  /** Configured ids at zero too, in the order of the config; `other` only once it counted. */
  entries(): [id: string, tally: Tally][];
}

/**
 * Counts by configured id. `configured` answers the ids now in force, and the same array until they change.
 * The first thousand get a label each. An id that left the config leaves the metrics; what still ends under it
 * counts as `other`.
 */
export function createTallies(configured: () => readonly string[]): Tallies {
  let source: readonly string[] | undefined;
  let known = new Map<string, Tally>();
  const other = emptyTally();

  function refresh(): boolean {
    const ids = configured();
    if (ids === source) {
      return false;
    }
    source = ids;
    const fresh = new Map<string, Tally>();
    for (const id of ids) {
      if (fresh.size === LABEL_VALUES) {
        break;
      }
      fresh.set(id, known.get(id) ?? emptyTally());
    }
    known = fresh;
    return true;
  }

  function of(id: string): Tally {
    const tally = known.get(id);
    if (tally !== undefined) {
      return tally;
    }
    return refresh() ? (known.get(id) ?? other) : other;
  }

  function entries(): [string, Tally][] {
    refresh();
    const all = [...known];
    if (other.allow + other.deny + other.injected + other.scrubbed > 0) {
      all.push([OTHER, other]);
    }
    return all;
  }

  return { of, entries };
}

/** A histogram's cells. */
export interface Buckets {
  /** Anything but a number from 0 up is passed over: one NaN would spoil the sum for good. */
  observe(seconds: number): void;
  /** Cumulative, as Prometheus wants them. */
  samples(name: string, labels: Readonly<Record<string, string>>): Sample[];
  readonly count: number;
}

/** `bounds`: upper bounds in rising order. */
export function createBuckets(bounds: readonly number[]): Buckets {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  let count = 0;

  function observe(seconds: number): void {
    if (!(seconds >= 0 && seconds < Number.POSITIVE_INFINITY)) {
      return;
    }
    let at = 0;
    while (at < bounds.length && seconds > (bounds[at] as number)) {
      at += 1;
    }
    counts[at] = (counts[at] as number) + 1;
    sum += seconds;
    count += 1;
  }

  function samples(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    let below = 0;
    const out: Sample[] = bounds.map((bound, at) => {
      below += counts[at] as number;
      return { metricName: `${name}_bucket`, labels: { ...labels, le: bound }, value: below };
    });
    out.push({ metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count });
    out.push({ metricName: `${name}_sum`, labels, value: sum });
    out.push({ metricName: `${name}_count`, labels, value: count });
    return out;
  }

  return {
    observe,
    samples,
    get count() {
      return count;
    },
  };
}

function emptyTally(): Tally {
  return { allow: 0, deny: 0, injected: 0, scrubbed: 0 };
}
