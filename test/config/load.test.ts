/** A config file as a whole: the shipped ones, the top level, and files that cannot be read. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { loadConfig, loadConfigText } from "../../src/config/load.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { configOf, linesOf, loadText, testProblems } from "./support.ts";

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

test("loadConfig: every sort of value at once", () => {
  const text = `version: 1
listen: { proxy: 127.0.0.1:8080, admin: 127.0.0.1:9464 }
ca: { dir: certs }
mode: evaluate_only
workers: 4
network:
  allowlist:
    - domain: telemetry.example.com
      transform: { Authorization: "Bearer \${env:TELEMETRY_TOKEN}" }
    - domain: "*"
  denylist: [ { domain: tracker.example.com } ]
sandboxes:
  - { id: ci-17, source: [10.80.0.2], token: "\${file:tokens/ci}", network: { allowlist: [] } }
upstream: { allow_ranges: ["10.20.0.0/16"], ca_file: extra-roots.pem }
records: { file: log/records.jsonl }
limits: { head_timeout: 5s }
`;
  const result = loadConfig(write("all.yaml", text), 7);
  assert.ok(result.ok);
  const { config } = result;
  assert.equal(config.file, join(folder, "all.yaml"));
  assert.equal(config.caDir, join(folder, "certs"));
  assert.equal(config.recordsFile, join(folder, "log/records.jsonl"));
  assert.equal(config.upstream.caFile, join(folder, "extra-roots.pem"));
  assert.equal(config.workers, 4);
  assert.equal(config.policy.generation, 7);
  assert.equal(config.policy.digest, createHash("sha256").update(text).digest("hex"));
  assert.equal(config.policy.mode, "evaluate_only");
  assert.deepEqual(config.limits, { ...DEFAULT_LIMITS, head_timeout: 5_000 });
  assert.deepEqual(
    [...config.templates],
    [
      ["sandboxes[0].token", [{ kind: "file", path: join(folder, "tokens/ci") }]],
      [
        "network.allowlist[0].transform.Authorization",
        [
          { kind: "literal", text: "Bearer " },
          { kind: "env", name: "TELEMETRY_TOKEN" },
        ],
      ],
    ],
  );
});

test("loadConfig: what is not said has its default, and empty sections say nothing", () => {
  const bare = configOf("version: 1\nnetwork: { allowlist: [] }\n");
  const empty = configOf(
    "version: 1\nnetwork: { allowlist: [] }\nlisten:\nca:\nsandboxes:\nupstream:\nrecords:\nlimits:\nhooks:\ncredentials:\n",
  );
  const { digest } = bare.policy;
  assert.deepEqual({ ...empty, text: bare.text, policy: { ...empty.policy, digest } }, bare);
  assert.equal(bare.caDir, "/etc/sallyport/certs");
  assert.deepEqual([bare.recordsFile, bare.workers, bare.policy.mode], ["-", "auto", "enforce"]);
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

test("loadConfig: a file that is not there, a folder and a pipe are refused", () => {
  execFileSync("mkfifo", [join(folder, "pipe")]);
  assert.deepEqual(unreadable(join(folder, "none.yaml")), ["1:1 The file cannot be read (ENOENT)"]);
  assert.deepEqual(unreadable(join(folder, "a\0b")), ["1:1 The file cannot be read (ERR_INVALID_ARG_VALUE)"]);
  assert.deepEqual(unreadable(folder), ["1:1 This is not a regular file"]);
  assert.deepEqual(unreadable(join(folder, "pipe")), ["1:1 This is not a regular file"]);
});

test("loadConfig: bytes that are not UTF-8 are refused", () => {
  assert.deepEqual(unreadable(write("latin1.yaml", Buffer.from("version: 1 # \xe9\n", "latin1"))), [
    "1:1 The file is not UTF-8",
  ]);
});

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

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
testProblems("loadConfigText", "", [
  ["no version", "network: { allowlist: [] }\n", "1:1 The file must say `version: 1`"],
  [
    "another version",
    "version: 2\nnetwork: { allowlist: [] }\n",
    "1:10 This program knows `version: 1` alone",
  ],
  [
    "a version in quotes",
    'version: "1"\nnetwork: { allowlist: [] }\n',
    "1:10 This program knows `version: 1` alone",
  ],
  [
    "an unknown key with a near one",
    `${HEAD}netwrok: disabled\n`,
    "3:1 Unknown key `netwrok`; did you mean `network`?",
  ],
  [
    "an unknown key with none near",
    `${HEAD}trust: all\n`,
    "3:1 Unknown key `trust` in the file; known are `version`, `listen`, `ca`, `mode`, `workers`, `network`, `credentials`, `vault`, `sandboxes`, `upstream`, `records`, `limits`, `hooks`, `hook_options`, `approvals`",
  ],
  [
    "a duplicate key",
    `${HEAD}network: { allowlist: [ { domain: "*" } ] }\n`,
    "3:1 Duplicate key `network`; it is on line 2 already",
  ],
  ["a list for a file", "- a\n", "1:1 The file must be a map of keys and values, found a list"],
  ["an empty file", "", "1:1 The file is empty"],
  [
    "an unknown mode",
    `${HEAD}mode: evaluate-only\n`,
    "3:7 `mode` must be `enforce` or `evaluate_only`; did you mean `evaluate_only`?",
  ],
  ["no workers", `${HEAD}workers: 0\n`, "3:10 `workers` must be a whole number from 1 to 64"],
  ["too many workers", `${HEAD}workers: 65\n`, "3:10 `workers` must be a whole number from 1 to 64"],
  ["workers in words", `${HEAD}workers: many\n`, "3:10 `workers` must be `auto` or a number from 1 to 64"],
  [
    "an unknown key of records",
    `${HEAD}records: { path: x }\n`,
    "3:12 Unknown key `path` in `records`; known are `file`",
  ],
  [
    "a records file that is a list",
    `${HEAD}records: { file: [x] }\n`,
    "3:18 `file` must be text, found a list",
  ],
  ["a CA folder without a name", `${HEAD}ca: { dir: "" }\n`, "3:12 `dir` must not be empty"],
  ["a CA that is text", `${HEAD}ca: certs\n`, "3:5 `ca` must be a map of keys and values, found text"],
  [
    "sections in one file are all read",
    "version: 2\nmode: x\nworkers: x\nnetwork: x\n",
    "1:10 This program knows `version: 1` alone",
    "2:7 `mode` must be `enforce` or `evaluate_only`",
    "3:10 `workers` must be `auto` or a number from 1 to 64",
    "4:10 `network` must be `disabled` or a map with an `allowlist`",
  ],
]);

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
