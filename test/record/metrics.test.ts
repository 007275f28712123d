import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { createMetrics, METRICS_CONTENT_TYPE, type Metrics, sumMetrics } from "../../src/record/metrics.ts";

/** Names and label keys that dashboards and alerts rely on. */
const CONTRACT: Readonly<Record<string, string>> = {
  sallyport_exchanges_total: "counter listener,protocol,verdict,reason",
  sallyport_rule_exchanges_total: "counter rule,verdict",
  sallyport_injections_total: "counter rule",
  sallyport_scrubbed_total: "counter rule",
  sallyport_exchange_duration_seconds: "histogram protocol",
  sallyport_overhead_seconds: "histogram ",
  sallyport_upstream_connect_seconds: "histogram ",
  sallyport_upstream_failures_total: "counter code",
  sallyport_connections: "gauge listener",
  sallyport_bytes_total: "counter direction",
  sallyport_dns_queries_total: "counter type,verdict",
  sallyport_leaf_certificates_total: "counter source",
  sallyport_leaf_cache_entries: "gauge ",
  sallyport_config_reloads_total: "counter result",
  sallyport_config_last_success_timestamp_seconds: "gauge ",
  sallyport_secrets_unavailable: "gauge ",
  sallyport_records_dropped_total: "counter ",
  sallyport_sandbox_exchanges_total: "counter sandbox,verdict",
  sallyport_evaluate_only: "gauge ",
  sallyport_build_info: "gauge version,node",
};

const RULES = ["api.example.com", 'odd "rule"\\\n'];
const SANDBOXES = ["ci-17"];

function create(): Metrics {
  return createMetrics({ version: "1.2.3", node: "v0", rules: () => RULES, sandboxes: () => SANDBOXES });
}

const RECORD: ExchangeRecord = {
  time: 0,
  sandbox: "ci-17",
  client: "127.0.0.1",
  listener: "explicit",
  protocol: "http/1.1",
  visibility: "request",
  method: "GET",
  host: "api.example.com",
  port: 443,
  path: "/",
  verdict: "allow",
  reason: "rule-allows",
  rule: "api.example.com",
  would: undefined,
  injected: ["Authorization", "X-Team"],
  policy: "0123456789ab",
  status: 200,
  bytesOut: 10,
  bytesIn: 2_000,
  durationMs: 12,
  failure: undefined,
  overheadMs: 0.2,
};

function exercise(metrics: Metrics): void {
  metrics.exchange(RECORD);
  metrics.exchange({
    ...RECORD,
    verdict: "deny",
    reason: "no-rule-matched",
    rule: undefined,
    injected: [],
    overheadMs: undefined,
  });
  metrics.exchange({
    ...RECORD,
    protocol: "ws",
    listener: "jail",
    failure: "E_CONNECT",
    fault: "upstream",
    sandbox: undefined,
  });
  metrics.exchange({ ...RECORD, verdict: "deny", reason: undefined, rule: undefined, failure: "E_TIMEOUT" });
  metrics.exchange({ ...RECORD, failure: "E_INTERNAL", rule: "not.configured.example", sandbox: "nor-this" });
  metrics.upstreamConnected(20);
  metrics.connectionOpened("explicit");
  metrics.connectionOpened("explicit");
  metrics.connectionClosed("explicit");
  metrics.leafCertificate("minted");
  metrics.recordsDropped(3);
  metrics.leafCacheEntries(4);
  metrics.secretsUnavailable(2);
  metrics.configReload("success", 1_700_000_000);
  metrics.configReload("failure", 1_700_000_100);
  metrics.evaluateOnly(true);
}

/** Sample lines by name and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(" ");
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

function promtool(text: string): string {
  const { status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], {
    input: text,
    encoding: "utf8",
  });
  return status === 0 ? "" : `${stdout}${stderr}`;
}

test("createMetrics holds every metric of the contract with its type and labels", async () => {
  const metrics = create();
  exercise(metrics);
  const text = await metrics.text();
  const found = new Map(
    [...text.matchAll(/^# TYPE (sallyport_\S+) (\S+)$/gm)].map((match) => [match[1], match[2]]),
  );
  assert.deepEqual([...found.keys()].sort(), Object.keys(CONTRACT).sort());
  for (const [name, expected] of Object.entries(CONTRACT)) {
    const suffix = found.get(name) === "histogram" ? "_count" : "";
    const sample = new RegExp(`^${name}${suffix}(?:\\{(.*)\\})? `, "m").exec(text);
    const keys = [...(sample?.[1] ?? "").matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map((match) => match[1]);
    assert.equal(`${found.get(name)} ${keys.join()}`, expected, name);
  }
});

test("text is what Prometheus reads without complaint, before and after any traffic", async () => {
  const metrics = create();
  const fresh = await metrics.text();
  assert.equal(promtool(fresh).replaceAll(/^nodejs_.*\n?/gm, ""), "");
  exercise(metrics);
  assert.equal(promtool(await metrics.text()).replaceAll(/^nodejs_.*\n?/gm, ""), "");
  assert.match(METRICS_CONTENT_TYPE, /^text\/plain; version=0\.0\.4/);
});

test("text tells what happened", async () => {
  const metrics = create();
  exercise(metrics);
  const samples = samplesOf(await metrics.text());
  const expected: Record<string, number> = {
    'sallyport_exchanges_total{listener="explicit",protocol="http/1.1",verdict="allow",reason="rule-allows"}': 2,
    'sallyport_exchanges_total{listener="explicit",protocol="http/1.1",verdict="deny",reason="no-rule-matched"}': 1,
    'sallyport_exchanges_total{listener="explicit",protocol="http/1.1",verdict="deny",reason=""}': 1,
    'sallyport_exchanges_total{listener="jail",protocol="ws",verdict="allow",reason="rule-allows"}': 1,
    'sallyport_rule_exchanges_total{rule="api.example.com",verdict="allow"}': 2,
    'sallyport_rule_exchanges_total{rule="odd \\"rule\\"\\\\\\n",verdict="deny"}': 0,
    'sallyport_rule_exchanges_total{rule="other",verdict="allow"}': 1,
    'sallyport_injections_total{rule="api.example.com"}': 4,
    'sallyport_scrubbed_total{rule="api.example.com"}': 0,
    'sallyport_sandbox_exchanges_total{sandbox="ci-17",verdict="allow"}': 1,
    'sallyport_sandbox_exchanges_total{sandbox="ci-17",verdict="deny"}': 2,
    'sallyport_sandbox_exchanges_total{sandbox="other",verdict="allow"}': 1,
    'sallyport_exchange_duration_seconds_bucket{protocol="http/1.1",le="0.01"}': 0,
    'sallyport_exchange_duration_seconds_bucket{protocol="http/1.1",le="0.025"}': 4,
    'sallyport_exchange_duration_seconds_count{protocol="ws"}': 1,
    sallyport_overhead_seconds_count: 4,
    'sallyport_upstream_connect_seconds_bucket{le="0.025"}': 1,
    'sallyport_upstream_failures_total{code="E_CONNECT"}': 1,
    'sallyport_upstream_failures_total{code="E_TIMEOUT"}': 0,
    'sallyport_connections{listener="explicit"}': 1,
    'sallyport_bytes_total{direction="out"}': 50,
    'sallyport_bytes_total{direction="in"}': 10_000,
    'sallyport_leaf_certificates_total{source="minted"}': 1,
    'sallyport_leaf_certificates_total{source="refused"}': 0,
    sallyport_leaf_cache_entries: 4,
    'sallyport_config_reloads_total{result="failure"}': 1,
    sallyport_config_last_success_timestamp_seconds: 1_700_000_000,
    sallyport_secrets_unavailable: 2,
    sallyport_records_dropped_total: 3,
    sallyport_evaluate_only: 1,
    'sallyport_build_info{version="1.2.3",node="v0"}': 1,
  };
  for (const [key, value] of Object.entries(expected)) {
    assert.equal(samples.get(key), value, key);
  }
});

test("text shows no string of a client's, whatever 10,000 exchanges claim", async () => {
  const metrics = create();
  const names = () => (async () => samplesOf(await metrics.text()).size)();
  exercise(metrics);
  const before = await names();
  for (let at = 0; at < 10_000; at += 1) {
    const junk = `junk-${at}.example`;
    metrics.exchange({
      ...RECORD,
      host: junk,
      method: junk,
      path: `/${junk}`,
      status: at,
      client: junk,
      rule: junk,
      sandbox: junk,
    });
  }
  assert.equal(await names(), before);
  assert.ok(!(await metrics.text()).includes("junk-"));
});

test("createMetrics has a registry of its own", async () => {
  const one = create();
  const other = create();
  one.recordsDropped(1);
  assert.equal(samplesOf(await other.text()).get("sallyport_records_dropped_total"), 0);
});

test("sumMetrics adds what adds up and takes the extreme of what does not", async () => {
  const [one, other] = [create(), create()];
  exercise(one);
  exercise(other);
  other.configReload("success", 1_700_000_500);
  other.secretsUnavailable(1);
  const parts = [await one.json(), JSON.parse(JSON.stringify(await other.json()))];
  const text = await sumMetrics(parts);
  assert.equal(promtool(text).replaceAll(/^nodejs_.*\n?/gm, ""), "");
  const samples = samplesOf(text);
  const expected: Record<string, number> = {
    'sallyport_exchanges_total{listener="explicit",protocol="http/1.1",verdict="allow",reason="rule-allows"}': 4,
    sallyport_overhead_seconds_count: 8,
    'sallyport_upstream_connect_seconds_bucket{le="0.025"}': 2,
    'sallyport_connections{listener="explicit"}': 2,
    sallyport_leaf_cache_entries: 8,
    'sallyport_config_reloads_total{result="success"}': 2,
    'sallyport_config_reloads_total{result="failure"}': 1,
    sallyport_config_last_success_timestamp_seconds: 1_700_000_000,
    sallyport_secrets_unavailable: 2,
    sallyport_records_dropped_total: 6,
    sallyport_evaluate_only: 1,
    'sallyport_build_info{version="1.2.3",node="v0"}': 1,
  };
  for (const [key, value] of Object.entries(expected)) {
    assert.equal(samples.get(key), value, key);
  }
  const start = samplesOf(await one.text()).get("process_start_time_seconds");
  assert.equal(samples.get("process_start_time_seconds"), start);
});

test("sumMetrics takes the time of the last good load from the processes that load one", async () => {
  const [supervisor, worker] = [create(), create()];
  supervisor.configReload("success", 1_700_000_000);
  const samples = samplesOf(await sumMetrics([await worker.json(), await supervisor.json()]));
  assert.equal(samples.get("sallyport_config_last_success_timestamp_seconds"), 1_700_000_000);
});

test("createMetrics leaves the process out where another registry has it", async () => {
  const options = { version: "0", node: "0", rules: () => RULES, sandboxes: () => SANDBOXES };
  const [one, other] = [createMetrics(options), createMetrics({ ...options, process: false })];
  assert.doesNotMatch(await other.text(), /^process_/m);
  const samples = samplesOf(await sumMetrics([await one.json(), await other.json()]));
  const alone = samplesOf(await one.text());
  assert.equal(samples.get("process_max_fds"), alone.get("process_max_fds"));
});
