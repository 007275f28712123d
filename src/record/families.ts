/** The list of metrics: name, type, labels and how several processes' values become one. Pure. */
import type { Buckets, Sample, Tallies } from "./cells.ts";
import type { Cells, Counts } from "./counts.ts";
import { DIRECTIONS, DNS_TYPES, PROTOCOLS, VERDICTS } from "./labels.ts";

/** How the processes' values become one: prom-client's aggregators. */
type Aggregate = "sum" | "first" | "min" | "max";

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly aggregator: Aggregate;
  readonly samples: () => readonly Sample[];
}

/** Every metric of docs/metrics.md but prom-client's own and the build's. */
export function familiesOf(cells: Cells): readonly Family[] {
  return [...exchangeFamilies(cells), ...trafficFamilies(cells), ...stateFamilies(cells)];
}

export function buildInfo(version: string, node: string): Family {
  return gauge("sallyport_build_info", "Always 1; the labels tell what runs", "first", () => [
    { labels: { version, node }, value: 1 },
  ]);
}

function exchangeFamilies(cells: Cells): Family[] {
  const { exchanges, rules, sandboxes, durations, overhead, connect, failures } = cells;
  return [
    counter("sallyport_exchanges_total", "Exchanges that ended", exchanges.samples),
    counter("sallyport_rule_exchanges_total", "Exchanges that a rule decided", () =>
      byVerdict("rule", rules),
    ),
    counter("sallyport_injections_total", "Header fields put on the wire for the client", () =>
      rules.entries().map(([rule, tally]) => ({ labels: { rule }, value: tally.injected })),
    ),
    counter("sallyport_scrubbed_total", "Exchanges whose answer held a secret, which was masked", () =>
      rules.entries().map(([rule, tally]) => ({ labels: { rule }, value: tally.scrubbed })),
    ),
    counter("sallyport_sandbox_exchanges_total", "Exchanges by sandbox", () =>
      byVerdict("sandbox", sandboxes),
    ),
    histogram("sallyport_exchange_duration_seconds", "Whole time of an exchange", (name) =>
      PROTOCOLS.flatMap((protocol) => durationSamples(name, protocol, durations[protocol])),
    ),
    histogram("sallyport_overhead_seconds", "Time spent in the gate until the request was sent on", (name) =>
      overhead.samples(name, {}),
    ),
    histogram("sallyport_upstream_connect_seconds", "Time to resolve, dial and shake hands", (name) =>
      connect.samples(name, {}),
    ),
    counter("sallyport_upstream_failures_total", "Exchanges that failed beyond the gate", () =>
      byLabel("code", failures),
    ),
  ];
}

function trafficFamilies(cells: Cells): Family[] {
  return [
    gauge("sallyport_connections", "Client connections open now", "sum", () =>
      byLabel("listener", cells.connections),
    ),
    counter("sallyport_bytes_total", "Body bytes of ended exchanges", () =>
      DIRECTIONS.map((direction) => ({ labels: { direction }, value: cells.bytes[direction] })),
    ),
    counter("sallyport_dns_queries_total", "DNS queries answered", () =>
      DNS_TYPES.flatMap((type) =>
        VERDICTS.map((verdict) => ({
          labels: { type, verdict },
          value: cells.lookups[`${type} ${verdict}`] as number,
        })),
      ),
    ),
    counter("sallyport_leaf_certificates_total", "Leaf certificates asked for", () =>
      byLabel("source", cells.leaves),
    ),
    gauge("sallyport_leaf_cache_entries", "Leaf certificates held", "sum", () => alone(cells.leafCache)),
  ];
}

function stateFamilies(cells: Cells): Family[] {
  return [
    // Each worker reloads the same file: their sum would count one reload several times.
    {
      ...counter("sallyport_config_reloads_total", "Loads of the config", () =>
        byLabel("result", cells.reloads),
      ),
      aggregator: "max",
    },
    // The worker that is furthest behind; a process that loads no config has no say.
    gauge(
      "sallyport_config_last_success_timestamp_seconds",
      "When the policy in force was loaded",
      "min",
      () => (cells.lastSuccess > 0 ? alone(cells.lastSuccess) : []),
    ),
    gauge("sallyport_secrets_unavailable", "Secrets that cannot be resolved now", "max", () =>
      alone(cells.secretsUnavailable),
    ),
    counter("sallyport_records_dropped_total", "Records that were lost", () => alone(cells.dropped)),
    gauge("sallyport_evaluate_only", "1 while the policy is not enforced", "max", () =>
      alone(cells.evaluateOnly),
    ),
  ];
}

function counter(name: string, help: string, samples: () => readonly Sample[]): Family {
  return { name, help, type: "counter", aggregator: "sum", samples };
}

function gauge(name: string, help: string, aggregator: Aggregate, samples: () => readonly Sample[]): Family {
  return { name, help, type: "gauge", aggregator, samples };
}

function histogram(name: string, help: string, samples: (name: string) => readonly Sample[]): Family {
  return { name, help, type: "histogram", aggregator: "sum", samples: () => samples(name) };
}

function byVerdict(label: "rule" | "sandbox", tallies: Tallies): Sample[] {
  return tallies
    .entries()
    .flatMap(([id, tally]) =>
      VERDICTS.map((verdict) => ({ labels: { [label]: id, verdict }, value: tally[verdict] })),
    );
}

function byLabel(label: string, counts: Counts<string>): Sample[] {
  return Object.entries(counts).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

/** HTTP/1.1 shows from the start, another protocol once it was spoken. */
function durationSamples(name: string, protocol: string, buckets: Buckets | undefined): Sample[] {
  if (buckets === undefined || (buckets.count === 0 && protocol !== "http/1.1")) {
    return [];
  }
  return buckets.samples(name, { protocol });
}

function alone(value: number): Sample[] {
  return [{ labels: {}, value }];
}
