/** Sallyport as a contender: one worker, records to a file, metrics on, a policy of ordinary size. */
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type GateConfig, startGate } from "../test/support/gate.ts";
import { type Internet, PUBLIC_V4 } from "../test/support/private-internet.ts";
import { PROXY } from "../test/support/wire-client.ts";
import type { Contender } from "./contender.ts";
import { INJECTED_HOST, TUNNELLED_HOST } from "./workloads.ts";

/** As `bin/sallyport` starts it. */
const AS_LAUNCHED = "--max-semi-space-size=32";
const MAIN = fileURLToPath(new URL("../src/start.mjs", import.meta.url));

export interface SallyportOptions {
  readonly core: number;
  /** Arguments for Node.js itself. */
  readonly nodeArgs: readonly string[];
}

export async function startSallyport(
  internet: Internet,
  { core, nodeArgs }: SallyportOptions,
): Promise<Contender> {
  const records = join(internet.directory, "records.jsonl");
  rmSync(records, { force: true });
  const program = ["taskset", "-c", String(core), process.execPath, AS_LAUNCHED, ...nodeArgs, MAIN];
  const gate = await startGate(internet, configOf(records), { program });
  return {
    pid: gate.pid,
    port: PROXY.port,
    caFile: gate.caPem,
    async audit({ injected }, requests) {
      const metrics = await gate.metrics();
      const injections = metrics.sum("sallyport_injections_total", { rule: "telemetry" });
      if (injected && injections < requests)
        throw new Error(`${injections} injections, ${requests} requests`);
      const dropped = metrics.sum("sallyport_records_dropped_total");
      if (dropped > 0) throw new Error(`${dropped} records were dropped`);
      if (injected && statSync(records).size < requests) throw new Error("The records are not written");
    },
    async stop() {
      const code = await gate.stop();
      rmSync(records, { force: true });
      if (code !== 0) throw new Error(`Sallyport ended with ${code}: ${gate.log}`);
    },
  };
}

/** Of the names, only two are asked for; the others are what a real policy holds beside them. */
function configOf(records: string): GateConfig {
  return {
    records: { file: records },
    network: {
      allowlist: [
        {
          id: "telemetry",
          domain: INJECTED_HOST,
          transform: { Authorization: `Bearer \${env:SECRET}` },
        },
        { domain: TUNNELLED_HOST },
        {
          id: "repositories",
          domain: "api.example.org",
          methods: ["GET", "POST", "PATCH"],
          paths: ["/repos/my-org/.*", "/orgs/my-org/.*", "/user"],
        },
        {
          id: "models",
          domain: "llm.example.org",
          methods: ["POST"],
          paths: ["/v1/messages", "/v1/messages/count_tokens"],
        },
        { domain: "registry.example.org", methods: ["GET", "HEAD"] },
        { domain: "*.packages.example.net" },
        { domain: "*.static.example.net", methods: ["GET", "HEAD"] },
        { domain: "db.example.com", ports: [5432, 443] },
        ...Array.from({ length: 10 }, (_, index) => ({ domain: `service-${index}.example.com` })),
      ],
      denylist: [{ domain: "tracker.example.com" }, { domain: "*.ads.example.com" }],
    },
    upstream: { dns: { hosts: { [INJECTED_HOST]: [PUBLIC_V4], [TUNNELLED_HOST]: [PUBLIC_V4] } } },
  };
}
