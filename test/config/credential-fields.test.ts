/** Fields that several kinds of credentials share: what stands before a token, and key files with line breaks. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

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

testProblems("parseReference", HEAD, [
  [
    "names, programs and quotes that cannot be",
    'bearer_token, token: "${credential:../x}" }\n  - { id: d, type: bearer_token, token: "${exec:get it}" }\n  - { id: e, type: bearer_token, token: "${exec:/bin/get \'it\'}" }\n',
    "4:41 `token` has a `${credential:NAME}` whose name is not one of letters, digits, dots, hyphens and underscores",
    "5:7 warning: No entry uses the credential `d`",
    "5:41 `token` has an `${exec:PROGRAM WORDS}` without an absolute path",
    "6:7 warning: No entry uses the credential `e`",
    "6:41 `token` has an `${exec:PROGRAM WORDS}` with a quote, backslash or control character: no shell reads it",
  ],
  [
    "lists that are none, and scopes that are none",
    'environment_variable, value: "${env:V}", trusted_domains: x, header_names: x }\n  - { id: o, type: oauth2, client_id: [], client_secret: "${env:S}", token_url: "https://a.example/", scopes: x }\n',
    "4:78 `trusted_domains` must be a list, found text",
    "4:95 `header_names` must be a list, found text",
    "5:7 warning: No entry uses the credential `o`",
    "5:39 `client_id` must be text, found a list",
    "5:111 `scopes` must be a list, found text",
  ],
]);

testProblems("readPlaceholder", "version: 1\n", [
  [
    "a variable of another kind of credential",
    'sandboxes: [ { id: s, source: [10.0.0.1], network: disabled, env: { A: { credential: c } } } ]\ncredentials: [ { id: c, type: bearer_token, token: "${env:T}" } ]\n',
    "2:86 Only a credential of type `environment_variable` has a placeholder to put here",
  ],
]);

testProblems(
  "header_name",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c } ] }\ncredentials:\n",
  [
    [
      "what is no token",
      '  - { id: c, type: bearer_token, token: "${env:T}", header_name: "a b" }\n',
      "4:66 `a b` cannot carry a secret: it is not a field name",
    ],
  ],
);
