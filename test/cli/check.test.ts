import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { firstError, problemsOf, renderProblem } from "../../src/cli/check.ts";
import { loadConfigText } from "../../src/config/load.ts";
import { folder, sallyport } from "./program.ts";

const GOOD = "version: 1\nnetwork: { allowlist: [ { domain: example.com } ] }\n";
const UNSEEN = "TLS to these passes unopened, so the Host inside is unseen:";
const BAD = "version: 1\nnetwork:\n  alowlist: []\nmode: maybe\n";
const SPOKEN =
  "version: 1\nnetwork:\n  allowlist:\n    - domain: example.com\n      transform: { Authorization: Bearer s3cr3t }\n";

const HOOK = `  - { name: h, type: command, command: [/opt/gate], domains: ["*.example.org"] }\n`;
const INSIDE = `version: 1
listen: { proxy: "127.0.0.1:8080", admin: { address: "127.0.0.1:9464", token: "\${env:ADMIN}" } }
network:
  allowlist:
    - domain: hooked.example.org
    - { domain: shut.example.org, intercept: never }
    - domain: api.slack.com
    - { domain: approved.example.com, approve: true }
    - { domain: mutual.example.com, client_certificate: me }
    - domain: "*.wide.example"
    - { domain: db.example.com, ports: [5432], protocol: tcp }
credentials:
  - { id: slack, type: environment_variable, value: "\${env:SLACK}", trusted_domains: ["*.slack.com"] }
upstream: { client_certificates: [ { id: me, cert: "\${file:c.pem}", key: "\${file:k.pem}" } ] }
hooks:
${HOOK}`;

const dir = folder({ "good.yaml": GOOD, "bad.yaml": BAD, "spoken.yaml": SPOKEN });

test("check: a good file is ok, in words and in JSON", async () => {
  const file = join(dir, "good.yaml");
  const text = await sallyport(["check", file]);
  assert.deepEqual(
    { code: text.code, stdout: text.stdout, stderr: text.stderr },
    { code: 0, stdout: `${file}: note: ${UNSEEN} example.com\n${file}: ok\n`, stderr: "" },
  );
  const json = await sallyport(["check", file, "--json"]);
  assert.deepEqual(JSON.parse(json.stdout), { ok: true, problems: [] });
  assert.equal(json.code, 0);
});

test("check: what is looked into is not said to pass unopened: hooks, placeholders, approval, a certificate", async () => {
  const { config } = await loaded("inside.yaml", INSIDE);
  assert.match(config.stdout, new RegExp(`note: ${UNSEEN} shut\\.example\\.org, \\*\\.wide\\.example$`, "m"));
  const { config: all } = await loaded("all.yaml", INSIDE.replace("*.example.org", "*"));
  assert.match(all.stdout, new RegExp(`note: ${UNSEEN} shut\\.example\\.org$`, "m"));
});

async function loaded(name: string, text: string) {
  const file = join(folder({ [name]: text, "c.pem": "", "k.pem": "" }), name);
  const config = await sallyport(["check", file]);
  assert.equal(config.code, 0, config.stdout);
  return { config };
}

test("check: each problem of a bad file has its place, the likely key, and ends it with 2", async () => {
  const file = join(dir, "bad.yaml");
  const text = await sallyport(["check", file]);
  assert.equal(text.code, 2);
  const lines = text.stdout.trim().split("\n");
  assert.equal(lines.length, 3);
  assert.match(lines[0] ?? "", new RegExp(`^${file}:3:3: .*alowlist.*allowlist`));
  assert.match(lines[1] ?? "", new RegExp(`^${file}:3:3: warning: `));
  assert.match(lines[2] ?? "", new RegExp(`^${file}:4:7: .*enforce`));
  const json = await sallyport(["check", file, "--json"]);
  assert.equal(json.code, 2);
  const { ok, problems } = JSON.parse(json.stdout) as {
    ok: boolean;
    problems: { line: number; severity: string }[];
  };
  assert.equal(ok, false);
  assert.deepEqual(
    problems.map(({ line, severity }) => [line, severity]),
    [
      [3, "error"],
      [3, "warning"],
      [4, "error"],
    ],
  );
});

test("check: a warning says that it is one, lets the file pass, and quotes no secret", async () => {
  const { code, stdout } = await sallyport(["check", join(dir, "spoken.yaml")]);
  assert.equal(code, 0);
  assert.match(stdout, /spoken\.yaml:5:\d+: warning: /);
  assert.doesNotMatch(stdout, /s3cr3t/);
});

test("check: without a file it takes the shipped place, and a file that is not there is a problem", async () => {
  const { code, stdout } = await sallyport(["check"], { cwd: folder() });
  assert.equal(code, 2);
  assert.match(stdout, /config\/sallyport\.yaml:1:1: /);
});

test("problemsOf gives the warnings of a good config and the errors of a bad one", () => {
  const good = loadConfigText(SPOKEN, "/c.yaml", 1);
  const bad = loadConfigText(BAD, "/c.yaml", 1);
  assert.ok(problemsOf(good).length > 0 && problemsOf(good).every(({ severity }) => severity === "warning"));
  assert.deepEqual(
    problemsOf(bad).map(({ line }) => line),
    [3, 3, 4],
  );
});

test("renderProblem: as editors understand it", () => {
  const problem = { file: "/c.yaml", line: 3, column: 7, message: "It is wrong" } as const;
  assert.equal(renderProblem({ ...problem, severity: "error" }), "/c.yaml:3:7: It is wrong");
  assert.equal(renderProblem({ ...problem, severity: "warning" }), "/c.yaml:3:7: warning: It is wrong");
});

test("firstError: passes warnings by, which stand before it in the file", () => {
  const loaded = loadConfigText("version: 1\nnetwork: { allowlst: [] }\n", "/c.yaml", 1);
  assert.equal(problemsOf(loaded)[0]?.severity, "warning");
  assert.match(firstError(problemsOf(loaded))?.message ?? "", /did you mean `allowlist`/);
  assert.equal(firstError([]), undefined);
});
