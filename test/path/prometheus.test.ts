/** A real Prometheus scrapes /metrics, and promtool finds nothing to say about it. Needs Debian's `prometheus`. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askConnect, askInside, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { ADMIN, SECRET, startGate } from "../support/gate.ts";
import { parseMetrics } from "../support/metrics-text.ts";
import { unrefAll } from "../support/namespace.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: [HOST], bound: true });
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
  await askInside(internet, gate, HOST);
  await askConnect(internet, "no.example.org:443");
});
after(() => internet.close());

/** Asks Prometheus' own API, which is what a dashboard does. */
async function query(text: string): Promise<readonly { value: readonly [number, string] }[]> {
  const wire = await dial(internet, { host: "127.0.0.1", port: 9090 });
  const path = `/api/v1/query?query=${encodeURIComponent(text)}`;
  const answer = await wire.send(head(`GET ${path} HTTP/1.1`, "Host: localhost", "Connection: close"));
  return JSON.parse(answer.body).data.result;
}

describe("/metrics", () => {
  test("is scraped by a Prometheus, which then answers queries from it", async () => {
    const directory = join(internet.directory, "prometheus");
    mkdirSync(directory);
    const target = `${ADMIN.host}:${ADMIN.port}`;
    const job = { job_name: "sallyport", scrape_interval: "1s", static_configs: [{ targets: [target] }] };
    writeFileSync(join(directory, "prometheus.yml"), JSON.stringify({ scrape_configs: [job] }));
    const flags = [
      "--config.file=prometheus.yml",
      "--storage.tsdb.path=data",
      "--web.listen-address=127.0.0.1:9090",
    ];
    const child = internet.gate.spawn(["prometheus", ...flags], { cwd: directory, stdio: "ignore" });
    unrefAll(child);
    internet.onClose(() => child.kill("SIGKILL"));

    const up = 'up{job="sallyport"} == 1';
    const end = Date.now() + 30_000;
    while ((await query(up).catch(() => [])).length === 0) {
      assert.ok(Date.now() < end, "Prometheus did not scrape");
      await delay(100);
    }
    const [allowed] = await query('sum(sallyport_exchanges_total{verdict="allow",reason="rule-allows"})');
    const [denied] = await query('sum(sallyport_exchanges_total{reason="no-rule-matched"})');
    assert.deepEqual([allowed?.value[1], denied?.value[1]], ["1", "1"]);
    const [quantile] = await query(
      "histogram_quantile(0.5, sum by (le) (sallyport_exchange_duration_seconds_bucket))",
    );
    assert.ok(Number(quantile?.value[1]) > 0);
  });

  test("pleases promtool", async () => {
    const { body } = await gate.admin("/metrics");
    const outcome = await run(internet, ["promtool", "check", "metrics"], { stdin: body });
    assert.deepEqual([outcome.code, outcome.stdout, outcome.stderr], [0, "", ""]);
  });

  test("has every metric of the contract", async () => {
    const names = new Set(parseMetrics((await gate.admin("/metrics")).body).samples.map(({ name }) => name));
    const wanted =
      "exchanges_total rule_exchanges_total injections_total scrubbed_total exchange_duration_seconds_bucket overhead_seconds_bucket " +
      "upstream_connect_seconds_bucket upstream_failures_total connections bytes_total dns_queries_total " +
      "leaf_certificates_total leaf_cache_entries config_reloads_total config_last_success_timestamp_seconds " +
      "secrets_unavailable records_dropped_total build_info";
    for (const name of wanted.split(" ")) assert.ok(names.has(`sallyport_${name}`), name);
    assert.ok(names.has("process_cpu_seconds_total"));
  });

  test("gets no label from a client, however many names and methods it tries", async () => {
    const before = (await gate.metrics()).samples.length;
    for (let count = 0; count < 100; count += 1) {
      const host = `random${count}.example.org`;
      await askConnect(internet, `${host}:443`);
      await askInside(internet, gate, HOST, head(`M${count} /${count} HTTP/1.1`, `Host: ${HOST}`));
    }
    const metrics = await gate.metrics();
    assert.ok(metrics.samples.length - before < 20, `${metrics.samples.length - before} more`);
    assert.doesNotMatch(JSON.stringify(metrics.samples), /random|M99/);
  });
});

describe("the admin listener", () => {
  for (const [path, status] of [
    ["/healthz", 200],
    ["/readyz", 200],
    ["/", 404],
    ["/debug", 404],
    ["/../etc/passwd", 404],
  ] as const) {
    test(`answers ${path} with ${status}`, async () => {
      assert.equal((await gate.admin(path)).start.split(" ")[1], String(status));
    });
  }

  test("is no destination for a client of the proxy", async () => {
    for (const host of ["127.0.0.1", "localhost", "11.0.0.1"]) {
      const wire = await dial(internet);
      const answer = await wire.send(head(`GET http://${host}:9464/metrics HTTP/1.1`, `Host: ${host}:9464`));
      assert.equal(answer.start, "HTTP/1.1 403 Forbidden");
    }
  });
});
