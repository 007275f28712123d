import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { createLocalFleet, type Fleet } from "../../src/cli/fleet.ts";
import { loadConfigText } from "../../src/config/load.ts";
import type { Config } from "../../src/model/config.ts";
import { sumMetrics } from "../../src/record/metrics.ts";
import { parseMetrics } from "../support/metrics-text.ts";
import { folder, freeAddress } from "./program.ts";

const dir = folder();

test("createLocalFleet: starts, counts, takes up another config, and drains", async () => {
  const proxy = await freeAddress();
  const fleet = fleetOf(configOf(proxy, "one.example"));
  await fleet.start();
  assert.match(await ask(proxy, "http://other.example/"), /^HTTP\/1\.1 403 /);
  await fleet.apply(configOf(proxy, "other.example"));
  assert.match(await ask(proxy, "http://one.example/"), /^HTTP\/1\.1 403 /);
  const metrics = parseMetrics(await sumMetrics(await fleet.metrics()));
  assert.equal(metrics.sum("sallyport_exchanges_total", { reason: "no-rule-matched" }), 2);
  assert.deepEqual(fleet.state(), { secretsUnavailable: [], recordsDropped: 0 });
  fleet.reopenRecords();
  await fleet.drain();
  await assert.rejects(ask(proxy, "http://one.example/"), { code: "ECONNREFUSED" });
});

test("createLocalFleet: an address that is taken is the operator's failure, and it can be closed then", async () => {
  const proxy = await freeAddress();
  const first = fleetOf(configOf(proxy, "one.example"));
  await first.start();
  const second = fleetOf(configOf(proxy, "one.example"));
  await assert.rejects(second.start(), { code: "E_CONFIG", message: /something else listens there/ });
  await second.drain();
  assert.match(await ask(proxy, "http://other.example/"), /^HTTP\/1\.1 403 /);
  await first.drain();
});

test("createLocalFleet: a secret that cannot be had is in its state, by name", async () => {
  const proxy = await freeAddress();
  const fleet = fleetOf(configOf(proxy, "one.example", `transform: { Authorization: "\${env:NONE}" }`));
  assert.equal(fleet.state().secretsUnavailable.length, 1);
  await fleet.drain();
});

function fleetOf(config: Config): Fleet {
  return createLocalFleet({
    config,
    env: {},
    onWorkerDeath: () => assert.fail("There are no workers"),
    jailEvents: { attached: () => {}, ended: () => {}, failed: () => {} },
  });
}

function configOf(proxy: string, domain: string, more = ""): Config {
  const entry = `{ domain: ${domain}${more === "" ? "" : `, ${more}`} }`;
  const text = `version: 1\nlisten: { proxy: "${proxy}" }\nca: { dir: ca }\nrecords: { file: records.jsonl }\nnetwork: { allowlist: [ ${entry} ] }\n`;
  const loaded = loadConfigText(text, join(dir, "c.yaml"), 1);
  return loaded.ok ? loaded.config : assert.fail(JSON.stringify(loaded.problems));
}

async function ask(proxy: string, url: string): Promise<string> {
  const [host = "", port = ""] = proxy.split(":");
  const socket = connect(Number(port), host);
  await once(socket, "connect");
  socket.write(`GET ${url} HTTP/1.1\r\nHost: ${new URL(url).host}\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const piece of socket) text += String(piece);
  return text;
}
