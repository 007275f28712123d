import assert from "node:assert/strict";
import { test } from "node:test";
import { warnOfRestart, warnOfSecrets, warnOfVariables } from "../../src/cli/warnings.ts";
import { loadConfigText } from "../../src/config/load.ts";
import type { Template } from "../../src/model/config.ts";
import type { Log } from "../../src/record/log.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";

test("warnOfVariables names what is set in vain, and what to write instead", () => {
  const { log, said } = listening();
  warnOfVariables(log, { NODE_EXTRA_CA_CERTS: "/x.pem", PATH: "/bin" });
  assert.deepEqual(said, [
    ["A variable has no effect here", { name: "NODE_EXTRA_CA_CERTS", instead: "upstream.ca_file" }],
  ]);
});

test("warnOfSecrets names by its key what cannot be had, and what is too short to be masked", () => {
  const { log, said } = listening();
  const templates = new Map<string, Template>([
    ["gone", [{ kind: "env", name: "GONE" }]],
    ["short", [{ kind: "env", name: "SHORT" }]],
    ["fine", [{ kind: "env", name: "FINE" }]],
  ]);
  const env = { SHORT: "abc", FINE: "correct-horse-battery" };
  warnOfSecrets(log, createSecrets(templates, { env, now: () => 0 }));
  assert.deepEqual(
    said.map(([message, fields]) => [message.split(/[,;]/)[0], fields?.["key"]]),
    [
      ["A secret cannot be had", "gone"],
      ["A secret is under 8 bytes", "short"],
    ],
  );
  assert.doesNotMatch(JSON.stringify(said), /abc/);
});

test("warnOfRestart names in the config's own words what waits for the next start", () => {
  const { log, said } = listening();
  const started = config("workers: 1");
  warnOfRestart(log, started, config("workers: 1\nlimits: { idle_timeout: 9s }"));
  assert.equal(said.length, 0);
  warnOfRestart(log, started, config("workers: 2\nca: { dir: other }\nrecords: { file: a.jsonl }"));
  assert.deepEqual(
    said.map(([, fields]) => fields?.["key"]),
    ["ca.dir", "workers", "records.file"],
  );
});

function listening() {
  const said: [message: string, fields: Readonly<Record<string, unknown>> | undefined][] = [];
  const log = {
    warn: (message: string, fields?: Record<string, unknown>) => void said.push([message, fields]),
  };
  return { log: log as unknown as Log, said };
}

function config(text: string) {
  const loaded = loadConfigText(`version: 1\nnetwork: { allowlist: [] }\n${text}\n`, "/nowhere/c.yaml", 1);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded.config;
}
