/** Fields that several kinds of credentials share: what stands before a token, and key files with line breaks. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf } from "./support.ts";

const HEAD =
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c } ] }\ncredentials:\n  - { id: c, type: ";

function templateOf(fields: string, key: string) {
  return configOf(`${HEAD}${fields} }\n`).templates.get(key);
}

test("prefixAt: a word and a blank, several words, none", () => {
  const before = (prefix: string): unknown =>
    templateOf(`bearer_token, token: "\${env:T}"${prefix}`, "credentials.c.token")?.at(0);
  assert.deepEqual(before(""), { kind: "literal", text: "Bearer " });
  assert.deepEqual(before(', prefix: "Token of"'), { kind: "literal", text: "Token of " });
  assert.deepEqual(before(', prefix: ""'), { kind: "env", name: "T" });
});

test("secretAt: key files may have line breaks, tokens may not", () => {
  const key = 'github_app, app_id: 1, installation_id: 2, private_key: "${credential:k}"';
  assert.deepEqual(templateOf(key, "credentials.c.private_key"), [
    { kind: "credential", name: "k", lines: true },
  ]);
  const token = 'bearer_token, token: "${exec:/bin/get a}", prefix: ""';
  assert.deepEqual(templateOf(token, "credentials.c.token"), [{ kind: "exec", command: ["/bin/get", "a"] }]);
});
