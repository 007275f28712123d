/** Turns measurements into the bench's tables and its verdict. Pure. */
import type { LoadResult } from "./load.ts";
import type { Workload } from "./workloads.ts";

/** One contender under one workload in one round. */
export interface Measurement {
  readonly workload: string;
  readonly contender: string;
  readonly round: number;
  readonly result: LoadResult;
}

/** Medians over the rounds. */
export interface Summary {
  readonly contender: string;
  readonly rounds: number;
  readonly requestsPerSecond: number;
  /** CPU seconds for 10,000 requests. */
  readonly cpu: number;
  readonly cpuLeast: number;
  /** Share of its core that the contender used. */
  readonly busy: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly memoryMib: number;
  readonly errors: number;
}

const COLUMNS = [
  "",
  "CPU s / 10,000",
  "least",
  "req/s",
  "core used",
  "p50 ms",
  "p99 ms",
  "PSS MiB",
  "errors",
];

const PEERS = { squid: "Squid", relay: "a bare node:http2 relay" } as const;

export function cpuPer10k({ cpuSeconds, requests }: LoadResult): number {
  return (cpuSeconds / requests) * 10_000;
}

export function summaryOf(contender: string, measurements: readonly Measurement[]): Summary {
  const results = measurements.filter((one) => one.contender === contender).map(({ result }) => result);
  const middle = (figure: (result: LoadResult) => number) => median(results.map(figure));
  return {
    contender,
    rounds: results.length,
    requestsPerSecond: middle(({ requests, seconds }) => requests / seconds),
    cpu: middle(cpuPer10k),
    cpuLeast: Math.min(...results.map(cpuPer10k)),
    busy: middle(({ cpuSeconds, seconds }) => cpuSeconds / seconds),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    memoryMib: middle(({ memoryBytes }) => memoryBytes / 2 ** 20),
    errors: results.reduce((sum, { errors }) => sum + errors, 0),
  };
}

/** Sallyport's cost over its peer's, round by round, so that both halves of a pair met the same noise. */
export function ratios(measurements: readonly Measurement[]): readonly number[] {
  return measurements.flatMap(({ contender, round, result }) => {
    const other = measurements.find((one) => one.contender !== "sallyport" && one.round === round);
    if (contender !== "sallyport" || other === undefined) return [];
    return [cpuPer10k(result) / cpuPer10k(other.result)];
  });
}

/** A Markdown section for one workload. */
export function render(workload: Workload, measurements: readonly Measurement[]): string {
  const contenders = [...new Set(measurements.map(({ contender }) => contender))];
  const rows = contenders.map((name) => cellsOf(summaryOf(name, measurements)));
  const lines = [COLUMNS, COLUMNS.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  const { name, about, connections } = workload;
  return [`## ${name}: ${about}, ${connections} connections`, ...lines, "", verdictOf(workload, measurements)]
    .join("\n")
    .trimEnd();
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const [low = Number.NaN, high = low] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return (low + high) / 2;
}

function verdictOf({ bound, peer }: Workload, measurements: readonly Measurement[]): string {
  const pairs = ratios(measurements);
  if (pairs.length === 0) return "";
  const ratio = median(pairs);
  const [low, high] = [Math.min(...pairs), Math.max(...pairs)].map((one) => one.toFixed(2));
  const verdict = bound === undefined ? "" : `: ${ratio <= bound ? "within" : "over"} ${bound}`;
  return `CPU per request, Sallyport over ${PEERS[peer]}: ${ratio.toFixed(2)} (median of ${pairs.length} pairs, from ${low} to ${high})${verdict}`;
}

function cellsOf(summary: Summary): readonly string[] {
  return [
    summary.contender,
    summary.cpu.toFixed(3),
    summary.cpuLeast.toFixed(3),
    summary.requestsPerSecond.toFixed(0),
    `${(summary.busy * 100).toFixed(0)} %`,
    summary.p50Ms.toFixed(1),
    summary.p99Ms.toFixed(1),
    summary.memoryMib.toFixed(0),
    String(summary.errors),
  ];
}
