/** Credentials: what each kind needs and may have, who uses it, and what entries get of it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { CREDENTIAL_TYPES } from "../../src/config/credentials.ts";
import { configOf, problemsIn, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c } ] }\ncredentials:";

testProblems("readCredentials", HEAD, [
  [
    "what is missing is said",
    " [ { type: oauth2, id: c }, {}, x ]\n",
    "2:58 No credential has the id `c`",
    "3:16 A credential of type `oauth2` needs a `client_id`",
    "3:16 A credential of type `oauth2` needs a `token_url`",
    "3:41 `id` is missing here",
    "3:41 `type` is missing here",
    "3:45 A credential must be a map of keys and values, found text",
  ],
  [
    "a key of another type, and an id twice",
    ' [ { id: c, type: bearer_token, token: "${env:T}", region: x }, { id: c, type: bearer_token, token: "${env:T}" } ]\n',
    "3:64 A credential of type `bearer_token` has no `region`",
    "3:77 The id `c` is taken by the credential on line 3",
  ],
  [
    "no list",
    " { id: a }\n",
    "2:58 No credential has the id `c`",
    "3:14 `credentials` must be a list, found a map",
  ],
]);

testProblems("useCredential", "version: 1\n", [
  [
    "an id that there is not, one that is no text, and one that nobody uses",
    'network: { allowlist: [ { domain: a.example, credential: x }, { domain: b.example, credential: [] } ] }\ncredentials: [ { id: c, type: basic, username: u, password: "${env:P}" } ]\n',
    "2:58 No credential has the id `x`",
    "2:96 `credential` must be text, found a list",
    "3:18 warning: No entry uses the credential `c`",
  ],
  [
    "a placeholder is not for entries, and a wildcard of strangers gets nothing",
    'network: { allowlist: [ { domain: a.example, credential: p }, { domain: "*.github.io", credential: c } ] }\ncredentials: [ { id: c, type: basic, username: u, password: "${env:P}" }, { id: p, type: environment_variable, value: "${env:V}", trusted_domains: [b.example] } ]\n',
    "2:58 A placeholder is replaced for its `trusted_domains`; an entry needs no `credential` for it",
    "2:88 `*.github.io` cannot inject: strangers can own names under `github.io`; name the hosts, or write `outsiders: accept`",
  ],
  [
    "what keeps out the inside",
    'network: { allowlist: [ { domain: a.example, intercept: never, credential: c } ] }\ncredentials: [ { id: c, type: aws_sigv4, access_key_id: "${env:P}", secret_access_key: "${env:Q}", region: r, service: s3 } ]\n',
    "2:64 `credential` needs the inside of TLS, and `intercept: never` keeps it shut",
  ],
]);

test("readRule: a transform wins over the credential in either spelling of the field", () => {
  const { policy } = configOf(
    'version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c, transform: { X_Key: "${env:U}" } } ] }\ncredentials: [ { id: c, type: bearer_token, token: "${env:T}", header_name: X-Key } ]\n',
  );
  assert.ok(policy.network.kind === "allowlist");
  assert.deepEqual(
    policy.network.rules[0]?.injections.map(({ field }) => field),
    ["X_Key"],
  );
});

test("readRule: the credential comes first and the transform is on top of it", () => {
  const { policy, templates } = configOf(
    'version: 1\nnetwork: { allowlist: [ { domain: a.example, credential: c, transform: { X-A: "1" } }, { domain: b.example, credential: c, transform: { authorization: "${env:U}" } } ] }\ncredentials: [ { id: c, type: bearer_token, token: "${env:T}", prefix: "token" } ]\n',
  );
  assert.ok(policy.network.kind === "allowlist");
  const [both, over] = policy.network.rules.map(({ injections }) => injections);
  assert.deepEqual(
    both?.map(({ field, secret }) => [field, secret]),
    [
      ["Authorization", "credentials.c.token"],
      ["X-A", "network.allowlist[0].transform.X-A"],
    ],
  );
  assert.deepEqual(
    over?.map(({ secret }) => secret),
    ["network.allowlist[1].transform.authorization"],
  );
  assert.deepEqual(templates.get("credentials.c.token"), [
    { kind: "literal", text: "token " },
    { kind: "env", name: "T" },
  ]);
});

test("readCredentials: seven kinds", () => {
  assert.equal(CREDENTIAL_TYPES.length, 7);
});

const SHARED =
  "Several workers use the refresh token of `c`; where it is good for one use, write `workers: 1` or keep it in a `${file:PATH}` that the gate may write";
for (const [name, workers, token, expected] of [
  ["a variable, and a worker for each core", "", "${env:R}", [`4:7 warning: ${SHARED}`]],
  ["a part of it from a file", "", "r${file:r}", [`4:7 warning: ${SHARED}`]],
  ["a file", "", "${file:r}", []],
  ["one worker", "workers: 1\n", "${env:R}", []],
] as const) {
  test(`lintCredentials: a refresh token that is good for one use: ${name}`, () => {
    const text = `version: 1
network: { allowlist: [ { domain: a.example, credential: c } ] }
credentials:
  - { id: c, type: oauth2, client_id: i, refresh_token: "${token}", token_url: "https://auth.example.com/" }
${workers}`;
    assert.deepEqual(problemsIn(text), expected);
  });
}
