/** What `run` and `attach` need of a config, and what they keep out of the sandbox. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { UsageError } from "../../src/cli/command.ts";
import { hiddenOf, jailConfigOf } from "../../src/cli/jail-config.ts";

let folder: string;
let config: string;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "sallyport-jail-"));
  config = join(folder, "c.yaml");
  writeFileSync(config, textOf("$" + "{env:TOKEN}"));
});
after(() => rmSync(folder, { recursive: true, force: true }));

function textOf(secret: string): string {
  return JSON.stringify({
    version: 1,
    records: { file: "r.jsonl" },
    network: { allowlist: [{ domain: "a.test", transform: { A: secret, B: "$" + "{file:token}" } }] },
    sandboxes: [{ id: "one", network: { allowlist: [] } }],
  });
}

test("jailConfigOf: a config, a sandbox of it, and no other", () => {
  assert.equal(jailConfigOf({ config })?.sandbox, undefined);
  assert.equal(jailConfigOf({ config, sandbox: "one" })?.sandbox, "one");
  assert.throws(() => jailConfigOf({ config, sandbox: "two" }), UsageError);
  assert.throws(() => jailConfigOf({ config, sandbox: "one", network: "n.yaml" }), UsageError);
});

test("jailConfigOf: a network of its own replaces the top-level one, and its secrets", (context) => {
  const said: string[] = [];
  context.mock.method(process.stderr, "write", (text: string) => said.push(text) > 0);
  const network = join(folder, "n.yaml");
  writeFileSync(network, "allowlist: [ { domain: b.test } ]\n");
  const chosen = jailConfigOf({ config, network })?.config;
  assert.ok(chosen?.policy.network.kind === "allowlist");
  assert.deepEqual(
    chosen.policy.network.rules.map(({ id }) => id),
    ["b.test"],
  );
  assert.deepEqual([...chosen.templates.keys()], []);
  assert.notEqual(chosen.policy.digest, jailConfigOf({ config })?.config.policy.digest);
  writeFileSync(network, "allowlist: [\n");
  assert.equal(jailConfigOf({ config, network }), undefined);
  assert.equal(jailConfigOf({ config, network: join(folder, "none") }), undefined);
  assert.equal(jailConfigOf({ config: join(folder, "none") }), undefined);
  assert.ok(said.some((line) => line.startsWith(`${network}:`)));
});

test("hiddenOf: variables and files of secrets, the CA's key, and what decides or tells", () => {
  const chosen = jailConfigOf({ config })?.config;
  assert.ok(chosen);
  const hidden = hiddenOf(chosen, "/n.yaml");
  assert.deepEqual([...hidden.variables], ["TOKEN"]);
  assert.deepEqual(hidden.secretFiles, [join(folder, "certs/ca.key"), join(folder, "token")]);
  assert.deepEqual(hidden.readOnlyFiles, [join(folder, "certs"), join(folder, "r.jsonl"), config, "/n.yaml"]);
});

test("hiddenOf: a config with a secret in words is one itself", () => {
  const spoken = join(folder, "spoken.yaml");
  writeFileSync(spoken, textOf("in-words"));
  const chosen = jailConfigOf({ config: spoken })?.config;
  assert.ok(chosen);
  assert.ok(hiddenOf(chosen, undefined).secretFiles.includes(spoken));
});

test("hiddenOf: the directory of systemd's credentials is not told of inside", () => {
  const file = join(folder, "systemd.yaml");
  const token = "$".concat("{credential:forge}");
  const entry = JSON.stringify({ domain: "a.example", transform: { Authorization: token } });
  writeFileSync(file, `version: 1\nnetwork: { allowlist: [ ${entry} ] }\n`);
  const chosen = jailConfigOf({ config: file })?.config;
  assert.ok(chosen);
  assert.deepEqual([...hiddenOf(chosen, undefined).variables], ["CREDENTIALS_DIRECTORY"]);
});
