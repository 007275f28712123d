/** What is counted, as plain numbers: nothing here formats, allocates or knows of Prometheus. Pure. */
import type { Listener } from "../model/exchange.ts";
import type { Counter, ExchangeRecord } from "../model/record.ts";
import { type Buckets, createBuckets, createTallies, type Tallies } from "./cells.ts";
import {
  createExchangeCells,
  type DIRECTIONS,
  DNS_TYPES,
  isUpstreamCode,
  LEAF_SOURCES,
  LISTENERS,
  PROTOCOLS,
  UPSTREAM_CODES,
  VERDICTS,
} from "./labels.ts";

/** Ids of the rules and sandboxes in force: the same array until they change. */
export interface Configured {
  readonly rules: () => readonly string[];
  readonly sandboxes: () => readonly string[];
}

/** What is not an event but a state, or happens outside an exchange. */
export interface Gauges {
  recordsDropped(count: number): void;
  leafCacheEntries(entries: number): void;
  /** How many secrets cannot be resolved now. */
  secretsUnavailable(count: number): void;
  /** `atSeconds`: since the epoch. */
  configReload(result: "success" | "failure", atSeconds: number): void;
  evaluateOnly(on: boolean): void;
}

const DURATION_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600,
];
const OVERHEAD_BUCKETS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];
const CONNECT_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30,
];

export type Counts<K extends string> = Record<K, number>;

export interface Cells {
  readonly exchanges: ReturnType<typeof createExchangeCells>;
  readonly rules: Tallies;
  readonly sandboxes: Tallies;
  readonly durations: Readonly<Record<string, Buckets>>;
  readonly overhead: Buckets;
  readonly connect: Buckets;
  readonly failures: Counts<string>;
  readonly connections: Counts<string>;
  readonly bytes: Counts<(typeof DIRECTIONS)[number]>;
  /** By type and verdict: `A allow`. */
  readonly lookups: Counts<string>;
  readonly leaves: Counts<string>;
  readonly reloads: Counts<"success" | "failure">;
  lastSuccess: number;
  leafCache: number;
  secretsUnavailable: number;
  dropped: number;
  evaluateOnly: number;
}

export function createCells(options: Configured): Cells {
  return {
    exchanges: createExchangeCells(),
    rules: createTallies(options.rules),
    sandboxes: createTallies(options.sandboxes),
    durations: Object.fromEntries(PROTOCOLS.map((protocol) => [protocol, createBuckets(DURATION_BUCKETS)])),
    overhead: createBuckets(OVERHEAD_BUCKETS),
    connect: createBuckets(CONNECT_BUCKETS),
    failures: zeros(UPSTREAM_CODES),
    connections: zeros(LISTENERS),
    bytes: { out: 0, in: 0 },
    lookups: zeros(DNS_TYPES.flatMap((type) => VERDICTS.map((verdict) => `${type} ${verdict}`))),
    leaves: zeros(LEAF_SOURCES),
    reloads: { success: 0, failure: 0 },
    lastSuccess: 0,
    leafCache: 0,
    secretsUnavailable: 0,
    dropped: 0,
    evaluateOnly: 0,
  };
}

export function counting(cells: Cells): Counter {
  return {
    exchange: (record) => countExchange(cells, record),
    upstreamConnected: (ms) => cells.connect.observe(ms / 1_000),
    connectionOpened: (listener) => add(cells.connections, listener, 1),
    connectionClosed: (listener) => add(cells.connections, listener, -1),
    leafCertificate: (source) => add(cells.leaves, source, 1),
  };
}

function countExchange(cells: Cells, record: ExchangeRecord): void {
  cells.exchanges.count(record);
  if (record.protocol === "dns") {
    const type = DNS_TYPES.find((name) => name === record.method) ?? "other";
    add(cells.lookups, `${type} ${record.verdict}`, 1);
  }
  if (record.rule !== undefined) {
    const tally = cells.rules.of(record.rule);
    tally[record.verdict] += 1;
    tally.injected += record.injected.length;
    if (record.scrubbed === true) tally.scrubbed += 1;
  }
  if (record.sandbox !== undefined) {
    cells.sandboxes.of(record.sandbox)[record.verdict] += 1;
  }
  cells.durations[record.protocol]?.observe(record.durationMs / 1_000);
  if (record.overheadMs !== undefined) {
    cells.overhead.observe(record.overheadMs / 1_000);
  }
  cells.bytes.out += record.bytesOut;
  cells.bytes.in += record.bytesIn;
  // A time-out may be the client's own.
  if (record.failure !== undefined && record.fault === "upstream" && isUpstreamCode(record.failure)) {
    add(cells.failures, record.failure, 1);
  }
}

export function setting(cells: Cells): Gauges {
  return {
    recordsDropped: (count) => {
      cells.dropped += count;
    },
    leafCacheEntries: (entries) => {
      cells.leafCache = entries;
    },
    secretsUnavailable: (count) => {
      cells.secretsUnavailable = count;
    },
    configReload: (result, atSeconds) => {
      cells.reloads[result] += 1;
      cells.lastSuccess = result === "success" ? atSeconds : cells.lastSuccess;
    },
    evaluateOnly: (on) => {
      cells.evaluateOnly = on ? 1 : 0;
    },
  };
}

function zeros(labels: readonly string[]): Counts<string> {
  return Object.fromEntries(labels.map((label) => [label, 0]));
}

function add(counts: Counts<string>, key: string | Listener, by: number): void {
  counts[key] = (counts[key] as number) + by;
}
