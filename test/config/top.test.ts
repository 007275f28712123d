/** The top level of a config: its sections and its plain keys. */

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfigText } from "../../src/config/load.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { configOf, testProblems } from "./support.ts";

const FOLDER = "/etc/sallyport";

test("readTop: every sort of value at once", () => {
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
  const result = loadConfigText(text, join(FOLDER, "all.yaml"), 7);
  assert.ok(result.ok);
  const { config } = result;
  assert.equal(config.file, join(FOLDER, "all.yaml"));
  assert.equal(config.caDir, join(FOLDER, "certs"));
  assert.equal(config.recordsFile, join(FOLDER, "log/records.jsonl"));
  assert.equal(config.upstream.caFile, join(FOLDER, "extra-roots.pem"));
  assert.equal(config.workers, 4);
  assert.equal(config.policy.generation, 7);
  assert.equal(config.policy.digest, createHash("sha256").update(text).digest("hex"));
  assert.equal(config.policy.mode, "evaluate_only");
  assert.deepEqual(config.limits, { ...DEFAULT_LIMITS, head_timeout: 5_000 });
  assert.deepEqual(
    [...config.templates],
    [
      ["sandboxes[0].token", [{ kind: "file", path: join(FOLDER, "tokens/ci") }]],
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

test("readTop: what is not said has its default, and empty sections say nothing", () => {
  const bare = configOf("version: 1\nnetwork: { allowlist: [] }\n");
  const empty = configOf(
    "version: 1\nnetwork: { allowlist: [] }\nlisten:\nca:\nsandboxes:\nupstream:\nrecords:\nlimits:\nhooks:\ncredentials:\n",
  );
  const { digest } = bare.policy;
  assert.deepEqual({ ...empty, text: bare.text, policy: { ...empty.policy, digest } }, bare);
  assert.equal(bare.caDir, "/etc/sallyport/certs");
  assert.deepEqual([bare.recordsFile, bare.workers, bare.policy.mode], ["-", "auto", "enforce"]);
});

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
testProblems("readTop", "", [
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
    "a key that stands in another section",
    `${HEAD}allowlist: []\n`,
    "3:1 Unknown key `allowlist` in the file; it stands in `network`",
  ],
  [
    "a key that stands in two others",
    `${HEAD}proxy: 127.0.0.1:8080\n`,
    "3:1 Unknown key `proxy` in the file; it stands in `listen` or `upstream`",
  ],
  [
    "a key that stands in many others",
    `${HEAD}token: x\n`,
    "3:1 Unknown key `token` in the file; known are `version`, `listen`, `ca`, `mode`, `workers`, `network`, `credentials`, `vault`, `sandboxes`, `upstream`, `records`, `limits`, `hooks`, `hook_options`, `approvals`",
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
