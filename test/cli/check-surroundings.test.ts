/** Beside the file: roots and secrets, as the machine that checks has them. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { checkSurroundings } from "../../src/cli/check-surroundings.ts";
import { loadConfigText } from "../../src/config/load.ts";
import { createAuthority } from "../support/pki.ts";
import { folder, sallyport } from "./program.ts";

const ROOTS = 'version: 1\nupstream:\n  ca_file: "roots.pem"\n';
const SECRETS = `version: 1
network:
  allowlist:
    - { domain: a.example.com, transform: { Authorization: "Bearer \${env:TOKEN}" } }
    - { domain: b.example.com, transform: [ { X-A: "\${env:TOKEN}" }, { X-B: "\${file:b.txt}" } ] }
    - { domain: c.example.com, credential: app }
credentials:
  - { id: app, type: github_app, app_id: "1", installation_id: "2", private_key: "\${env:PEM}" }
`;

function problems(text: string, files: Readonly<Record<string, string>>, env: Record<string, string> = {}) {
  const loaded = loadConfigText(text, join(folder(files), "c.yaml"), 1);
  assert.ok(loaded.ok);
  return checkSurroundings(loaded.config, env).map(
    ({ severity, line, column, message }) => `${line}:${column} ${severity}: ${message}`,
  );
}

test("checkSurroundings: roots that can be used are no problem, and neither are none", () => {
  assert.deepEqual(problems(ROOTS, { "roots.pem": createAuthority("Root").certPem }), []);
  assert.deepEqual(problems("version: 1\n", {}), []);
});

test("checkSurroundings: a file of roots that is not here, or holds none, is a warning at its place", () => {
  const [missing = "", ...more] = problems(ROOTS, {});
  assert.match(
    missing,
    /^3:12 warning: upstream\.ca_file .*roots\.pem cannot be read \(ENOENT\); serve does not/,
  );
  assert.deepEqual(more, []);
  assert.match(
    problems(ROOTS, { "roots.pem": "junk" })[0] ?? "",
    /^3:12 warning: .*holds no PEM certificate/,
  );
});

test("checkSurroundings: a hook's program that is not here is a warning; a bare name is not looked up", () => {
  const hook = (name: string, command: string): string =>
    `  - { name: ${name}, type: command, command: [${command}], domains: ["*"] }\n`;
  const http = '  - { name: web, type: http, url: "https://hooks.example.com/", domains: ["*"] }\n';
  const hooks = [http, hook("here", "/bin/sh, -c, x"), hook("bare", "gate"), hook("gone", "/no/such/gate")];
  assert.deepEqual(problems(`version: 1\nhooks:\n${hooks.join("")}`, {}), [
    "6:43 warning: The program of hook gone cannot be started here; without it every request that it is asked about is refused",
  ]);
});

for (const [name, value] of Object.entries({
  "CR LF": "abc\r\nX-Evil: 1",
  NUL: "abc\0d",
  "a last LF": "abcdef\n",
})) {
  test(`checkSurroundings: a variable with ${name} is an error where it is first referred to, and is not quoted`, () => {
    const found = problems(SECRETS, { "b.txt": "sound-value" }, { TOKEN: value, PEM: "a\nb\n" });
    assert.equal(found.length, 1);
    assert.match(found[0] ?? "", /^4:60 error: Environment variable `TOKEN` /);
    assert.doesNotMatch(found[0] ?? "", /abc|Evil/);
  });
}

test("checkSurroundings: so is a file; a key file has line breaks, and what is missing may be elsewhere", () => {
  const found = problems(SECRETS, { "b.txt": "abc\r\nX-Evil: 1" }, { PEM: "a\nb\n" });
  assert.equal(found.length, 1);
  assert.match(found[0] ?? "", /^5:\d+ error: File `.*b\.txt` holds a line break/);
  assert.deepEqual(problems(SECRETS, {}), []);
});

test("check: what is around the file counts, in words, in JSON and in the exit status", async () => {
  const dir = folder({ "c.yaml": SECRETS, "b.txt": "abc\r\nd", "r.yaml": ROOTS });
  const broken = await sallyport(["check", join(dir, "c.yaml")]);
  assert.equal(broken.code, 2);
  assert.match(broken.stdout, /c\.yaml:5:\d+: File /);
  assert.doesNotMatch(broken.stdout, /: ok$/m);
  const json = await sallyport(["check", "--json", join(dir, "c.yaml")]);
  assert.equal((JSON.parse(json.stdout) as { ok: boolean }).ok, false);
  const roots = await sallyport(["check", join(dir, "r.yaml")]);
  assert.equal(roots.code, 0);
  assert.match(roots.stdout, /r\.yaml:3:12: warning: upstream\.ca_file /);
});
