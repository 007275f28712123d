/** The vault's section, and references that lead there. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadConfigWithNetwork } from "../../src/config/load.ts";
import { configOf, linesOf, testProblems } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-vault-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const USE = `network: { allowlist: [ { domain: a.example, credential: c } ] }
credentials: [ { id: c, type: bearer_token, token: "\${vault:secret/team/api#token}" } ]
`;

test("vault: address, token and namespace; its address is nobody's destination", () => {
  const config = configOf(
    `version: 1\nvault: { address: "https://vault.example:8200/", token: "\${env:T}", namespace: team/a }\n${USE}`,
  );
  const destination = { kind: "name", host: "vault.example", port: 8200 };
  assert.deepEqual(config.vault, {
    endpoint: { scheme: "https", destination, target: "" },
    token: "vault.token",
    namespace: "team/a",
  });
  assert.deepEqual(config.policy.endpoints, [destination]);
  assert.deepEqual(config.templates.get("vault.token"), [{ kind: "env", name: "T" }]);
  assert.deepEqual(config.templates.get("credentials.c.token"), [
    { kind: "literal", text: "Bearer " },
    { kind: "vault", mount: "secret", path: "team/api", field: "token" },
  ]);
});

test("vault: a path before its API, a loopback in clear text, none at all", () => {
  const config = configOf(
    `version: 1\nvault: { address: "http://127.0.0.1:8200/x/", token: "\${file:t}" }\n${USE}`,
  );
  assert.equal(config.vault?.endpoint.target, "/x");
  assert.equal(config.vault.namespace, undefined);
  assert.equal(configOf("version: 1\nvault:\nnetwork: { allowlist: [] }\n").vault, undefined);
});

test("vault: another file's network may have secrets of it too", () => {
  const file = join(folder, "base.yaml");
  const network = join(folder, "network.yaml");
  writeFileSync(file, `version: 1\nvault: { address: "https://v.example", token: "\${env:T}" }\n${USE}`);
  writeFileSync(
    network,
    'allowlist: [ { domain: b.example, credential: c }, { domain: c.example, transform: { X-Key: "${vault:secret/b#k}" } } ]',
  );
  const result = loadConfigWithNetwork(file, network, 1);
  assert.ok(result.ok, linesOf(result).join("\n"));
  writeFileSync(network, "[");
  assert.equal(loadConfigWithNetwork(file, network, 1).ok, false);
  assert.deepEqual(
    [...result.config.templates].filter(([, template]) => template.some(({ kind }) => kind === "vault"))
      .length,
    2,
  );
});

const WORDS = "must begin with `https://` and a host, without user, password or fragment";
testProblems("vault", "version: 1\nnetwork: { allowlist: [] }\n", [
  ["both are needed", "vault: {}\n", "3:8 `address` is missing here", "3:8 `token` is missing here"],
  ["no map", "vault: 1\n", "3:8 `vault` must be a map of keys and values, found a number"],
  [
    "clear text leaves this machine",
    'vault: { address: "http://10.0.0.1:8200", token: "${env:T}" }\n',
    "3:19 `address` must begin with `https://`: a secret is sent there",
  ],
  [
    "a password in the address",
    'vault: { address: "https://u:p@v.example", token: "${env:T}" }\n',
    `3:19 \`address\` ${WORDS}`,
  ],
  [
    "a query",
    'vault: { address: "https://v.example/?a", token: "${env:T}" }\n',
    "3:10 `address` must not have a query",
  ],
  [
    "its token from itself",
    'vault: { address: "https://v.example", token: "${vault:a/b#c}" }\n',
    "3:47 The vault's own `token` must come from a variable or a file",
  ],
  [
    "its token from a program",
    'vault: { address: "https://v.example", token: "${exec:/bin/a}" }\n',
    "3:47 The vault's own `token` must come from a variable or a file",
  ],
  [
    "its token written out",
    "vault: { address: https://v.example, token: 1 }\n",
    "3:45 `token` must be text, found a number; put it in quotes",
  ],
  [
    "a namespace with a line break",
    'vault: { address: "https://v.example", token: "${env:T}", namespace: "a\\nb" }\n',
    "3:70 `namespace` must be of letters, digits, dots, hyphens, underscores and slashes",
  ],
  [
    "an empty namespace",
    'vault: { address: "https://v.example", token: "${env:T}", namespace: "" }\n',
    "3:70 `namespace` must not be empty",
  ],
]);

testProblems("vault: without a section", "version: 1\n", [
  ["a reference leads nowhere", USE, "3:52 `token` is in a vault, and there is no `vault` section"],
]);
