/** The one adapter of prom-client: it prints what was counted, and makes one of several processes' counts. */
import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { Counter } from "../model/record.ts";
import { type Configured, counting, createCells, type Gauges, setting } from "./counts.ts";
import { buildInfo, type Family, familiesOf } from "./families.ts";

export interface MetricsOptions extends Configured {
  readonly version: string;
  readonly node: string;
  /** Whether prom-client's metrics of the process are among them (default: true). Of each process once, or a sum counts it twice. */
  readonly process?: boolean;
}

/** One process's metrics as plain values that survive JSON: what a worker sends to its supervisor. */
export type MetricsPart = readonly object[];

export interface Metrics extends Counter, Gauges {
  /** The text exposition of this process alone; its type is `METRICS_CONTENT_TYPE`. */
  text(): Promise<string>;
  json(): Promise<MetricsPart>;
}

export const METRICS_CONTENT_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** prom-client leaves these out of a sum, or takes their mean; of several processes the extreme one matters. */
const EXTREMES: ReadonlyMap<unknown, Family["aggregator"]> = new Map([
  ["process_start_time_seconds", "min"],
  ["nodejs_eventloop_lag_seconds", "max"],
  ["nodejs_eventloop_lag_p50_seconds", "max"],
  ["nodejs_eventloop_lag_p90_seconds", "max"],
  ["nodejs_eventloop_lag_p99_seconds", "max"],
]);

/** Gauges of prom-client's that call themselves counters, which Prometheus' own linter refuses. */
const MISNAMED = ["handles", "requests", "resources"].map((what) => `nodejs_active_${what}_total`);

/** A registry of its own, so that two gates in one process, or a library's metrics, do not meet. */
export function createMetrics(options: MetricsOptions): Metrics {
  const cells = createCells(options);
  const registry = new Registry();
  for (const family of [...familiesOf(cells), buildInfo(options.version, options.node)]) {
    expose(registry, family);
  }
  if (options.process !== false) {
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  }
  return {
    ...counting(cells),
    ...setting(cells),
    text: () => registry.metrics(),
    json: () => registry.getMetricsAsJSON(),
  };
}

/** The text exposition of several processes as one. Parts may have crossed an IPC channel. */
export function sumMetrics(parts: readonly MetricsPart[]): Promise<string> {
  return AggregatorRegistry.aggregate(parts.map((part) => part.map(withExtreme))).metrics();
}

function withExtreme(metric: object): object {
  const aggregator = EXTREMES.get((metric as { readonly name?: unknown }).name);
  return aggregator === undefined ? metric : { ...metric, aggregator };
}

/** Of a registered metric prom-client asks nothing but this; its own aggregated metrics have the same shape. */
function expose(registry: Registry, family: Family): void {
  const { name, help, type, aggregator, samples } = family;
  const get = async () => ({ name, help, type, aggregator, values: samples() });
  registry.registerMetric({ name, help, type, aggregator, get } as unknown as Metric);
}
