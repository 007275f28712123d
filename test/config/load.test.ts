/** A config file as a whole: the shipped ones, the top level, and files that cannot be read. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { loadConfig, loadConfigText } from "../../src/config/load.ts";
import { configOf, linesOf, loadText } from "./support.ts";

/** Inside a container the door stands open on purpose. */
const CONTAINER = "config/container.yaml";
const OPEN = "warning: Anyone who reaches this address may use the proxy";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "sallyport-config-"));
after(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content: string | Uint8Array): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

for (const file of globSync(["config/*.yaml", "config/examples/*.yaml"], { cwd: ROOT })) {
  test(`loadConfig: ${file} is fine, whatever the environment`, () => {
    const lines = linesOf(loadConfig(join(ROOT, file), 1));
    assert.deepEqual(lines, file === CONTAINER ? lines.filter((line) => line.includes(OPEN)) : []);
  });
}

test("loadConfig: the shipped file stands on loopback, makes its CA in certs/ and records to stdout", () => {
  const result = loadConfig(join(ROOT, "config/sallyport.yaml"), 1);
  assert.ok(result.ok);
  assert.deepEqual(result.config.listen.proxy, { host: "127.0.0.1", port: 8080 });
  assert.deepEqual(result.config.listen.admin, { host: "127.0.0.1", port: 9464, token: undefined });
  assert.equal(result.config.caDir, join(ROOT, "certs"));
  assert.equal(result.config.recordsFile, "-");
  assert.deepEqual(result.config.policy.sandboxes, []);
});

test("loadConfig: JSON is YAML", () => {
  const text = JSON.stringify(
    { version: 1, network: { allowlist: [{ domain: "a.example", ports: [443] }] } },
    null,
    "\t",
  );
  assert.ok(loadText(text).ok);
});

test("loadConfig: a byte order mark and CRLF change nothing", () => {
  const result = loadConfig(write("bom.yaml", "\ufeffversion: 1\r\nnetwork:\r\n  allowlist: []\r\n"), 1);
  assert.deepEqual(linesOf(result), []);
});

function unreadable(file: string): readonly string[] {
  const result = loadConfig(file, 1);
  assert.ok(!result.ok);
  assert.equal(result.problems[0]?.file, file);
  return linesOf(result);
}

test("loadConfig: more than 1 MiB is refused, and 1 MiB is not", () => {
  const head = "version: 1\nnetwork: { allowlist: [] }\n#";
  assert.deepEqual(linesOf(loadConfig(write("full.yaml", head.padEnd(1_048_576, "x")), 1)), []);
  assert.deepEqual(unreadable(write("over.yaml", head.padEnd(1_048_577, "x"))), [
    "1:1 The file is larger than 1 MiB",
  ]);
  const text = loadText(head.padEnd(1_048_577, "x"));
  assert.deepEqual(linesOf(text), ["1:1 The file is larger than 1 MiB"]);
});

test("loadConfig: a file of twenty thousand entries is read in good time", () => {
  const lines = Array.from({ length: 20_000 }, (_, index) => `    - domain: h${index}.example.com`);
  const started = process.cpuUsage();
  const config = configOf(`version: 1\nnetwork:\n  allowlist:\n${lines.join("\n")}\n`);
  const { user, system } = process.cpuUsage(started);
  assert.ok(config.policy.network.kind === "allowlist" && config.policy.network.rules.length === 20_000);
  assert.ok(user + system < 8_000_000, `${(user + system) / 1_000} ms`);
});

test("loadConfigText: a secret in the wrong place is quoted nowhere", () => {
  const secret = "s3cr3t-c4n4ry";
  const places = [
    `version: ${secret}\n`,
    `mode: ${secret}\n`,
    `workers: ${secret}\n`,
    `listen: { proxy: ${secret}, admin: { address: ${secret}, token: [${secret}] } }\n`,
    `network: ${secret}\n`,
    `network: { allowlist: [ ${secret}, { domain: "https://u:${secret}@a.example/", id: "${secret} ", methods: [${secret}], paths: [${secret}], protocol: ${secret} } ] }\n`,
    `network: { allowlist: [ { domain: a.example, transform: { A: "\${${secret}}", B: "${secret}\\n", C: [${secret}], D: "\${env:${secret}}", E: "\${env:X${secret}", F: "\${vault:${secret}}" } } ] }\n`,
    `sandboxes: [ { id: "${secret} ", token: "\${${secret}}", mac: ${secret}, source: [x] } ]\n`,
    `credentials: [ { id: a, type: oauth2, client_secret: "${secret}\\n", token: "\${${secret}}", token_url: "http://${secret}:${secret}@a/" } ]\n`,
    `upstream: { proxy: { url: "http://u:${secret}@proxy/", auth: "\${${secret}}" } }\n`,
    `limits: { head_bytes: ${secret} }\n`,
  ];
  for (const place of places) {
    const result = loadText(place);
    assert.ok(!result.ok);
    assert.doesNotMatch(JSON.stringify(result), /s3cr3t/, place);
  }
});

const KEY = fc.constantFrom(
  "version",
  "listen",
  "proxy",
  "admin",
  "network",
  "allowlist",
  "denylist",
  "domain",
  "transform",
  "ports",
  "paths",
  "methods",
  "sandboxes",
  "id",
  "source",
  "token",
  "upstream",
  "dns",
  "hosts",
  "limits",
  "head_bytes",
  "hooks",
  "credentials",
  "intercept",
  "protocol",
  "private",
  "X",
);
const LEAF = fc.oneof(
  fc.constantFrom(
    "*",
    "a.example",
    "10.0.0.0/8",
    "127.0.0.1:1",
    "${env:A}",
    "${",
    "auto",
    "tcp",
    "disabled",
    "",
    "10s",
    "/a.*",
  ),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.double(),
);
const TREE = fc.letrec((tie) => ({
  node: fc.oneof(
    { maxDepth: 5 },
    LEAF,
    fc.array(tie("node"), { maxLength: 3 }),
    fc.dictionary(KEY, tie("node"), { maxKeys: 5 }),
  ),
})).node;
test("loadConfigText: any tree is loaded or refused with a place, and never throws", () => {
  fc.assert(
    fc.property(fc.dictionary(KEY, TREE, { maxKeys: 6 }), (top) => {
      const result = loadConfigText(JSON.stringify({ version: 1, ...top }), "f.yaml", 1);
      for (const { line, column, message } of result.ok ? result.warnings : result.problems) {
        assert.ok(line >= 1 && column >= 1 && /^[A-Z`]/.test(message) && !message.endsWith("."), message);
      }
      if (!result.ok) assert.ok(result.problems.some(({ severity }) => severity === "error"));
    }),
    { numRuns: 1_000 },
  );
});
