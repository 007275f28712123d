/** Sandboxes: how each is known, and that no two are known by the same. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, problemsIn, testProblems } from "./support.ts";

const HEAD = "version: 1\nsandboxes:\n";

test("readSandboxes: id, source, token and network are kept", () => {
  const config = configOf(
    `${HEAD}  - { id: a.b-c_1, source: [10.0.0.1, 10.1.0.0/16], token: "\${env:T}", network: disabled }\n`,
  );
  const [sandbox] = config.policy.sandboxes;
  assert.equal(sandbox?.id, "a.b-c_1");
  assert.deepEqual(
    sandbox.source.map(({ base, prefixBits }) => `${base.text}/${prefixBits}`),
    ["10.0.0.1/32", "10.1.0.0/16"],
  );
  assert.equal(sandbox.token, "sandboxes[0].token");
  assert.deepEqual(sandbox.network, { kind: "disabled" });
  assert.deepEqual(config.templates.get("sandboxes[0].token"), [{ kind: "env", name: "T" }]);
});

test("readSandboxes: none, empty and absent are the same", () => {
  for (const text of ["sandboxes: []\n", "sandboxes:\n", ""]) {
    assert.deepEqual(configOf(`version: 1\nnetwork: { allowlist: [] }\n${text}`).policy.sandboxes, []);
  }
});

test("readSandboxes: a sandbox's denylist is its own, the top one everybody's", () => {
  const { policy } = configOf(
    `version: 1\nnetwork: { allowlist: [], denylist: [ { domain: a.example } ] }\nsandboxes:\n  - { id: s, source: [10.0.0.1], network: { allowlist: [], denylist: [ { domain: b.example } ] } }\n`,
  );
  assert.deepEqual(
    policy.denylist.map(({ id }) => id),
    ["a.example"],
  );
  assert.deepEqual(policy.network, { kind: "allowlist", rules: [], denylist: [] });
  const network = policy.sandboxes[0]?.network;
  assert.ok(network?.kind === "allowlist");
  assert.deepEqual(
    network.denylist.map(({ id }) => id),
    ["b.example"],
  );
});

test("readSandboxes: overlaps of ten thousand sandboxes are found in good time", () => {
  const lines = Array.from(
    { length: 10_000 },
    (_, index) => `  - { id: s${index}, source: [10.${index >> 8}.${index & 255}.0/24], network: disabled }`,
  );
  lines.push("  - { id: last, source: [10.7.9.1], network: disabled }");
  assert.deepEqual(problemsIn(`${HEAD}${lines.join("\n")}\n`), [
    "10003:26 This `source` overlaps with that of `s1801` on line 1804, and neither has a token",
  ]);
});

const NO_TOKEN = "and neither has a token";
const ID = "must be 1 to 64 letters, digits, dots, hyphens or underscores";
testProblems("readSandboxes", HEAD, [
  [
    "nothing to know it by",
    "  - { id: a, network: disabled }\n",
    "3:5 warning: Without `source`, `token` or `netns` this sandbox is known to `run` and `attach` alone",
  ],
  ["no id", "  - { source: [10.0.0.1], network: disabled }\n", "3:5 A sandbox needs an `id`"],
  [
    "an id that would split a password",
    '  - { id: "a:b", source: [10.0.0.1], network: disabled }\n',
    `3:11 \`id\` ${ID}`,
  ],
  [
    "an id that is too long",
    `  - { id: ${"x".repeat(65)}, source: [10.0.0.1], network: disabled }\n`,
    `3:11 \`id\` ${ID}`,
  ],
  [
    "an id that is a number",
    "  - { id: 17, source: [10.0.0.1], network: disabled }\n",
    "3:11 `id` must be text, found a number; put it in quotes",
  ],
  [
    "the same id twice",
    "  - { id: a, source: [10.0.0.1], network: disabled }\n  - { id: a, source: [10.0.0.2], network: disabled }\n",
    "4:7 The sandbox `a` is on line 3 already",
  ],
  [
    "the same source twice",
    "  - { id: a, source: [10.0.0.1], network: disabled }\n  - { id: b, source: [10.0.0.1], network: disabled }\n",
    `4:23 This \`source\` overlaps with that of \`a\` on line 3, ${NO_TOKEN}`,
  ],
  [
    "a source within another's",
    "  - { id: a, source: [10.0.0.7], network: disabled }\n  - { id: b, source: [10.0.0.0/8, 192.168.0.1], network: disabled }\n",
    `3:23 This \`source\` overlaps with that of \`b\` on line 4, ${NO_TOKEN}`,
  ],
  [
    "overlaps within one sandbox are its own affair",
    "  - { id: a, source: [10.0.0.0/8, 10.0.0.1], network: disabled }\n",
  ],
  [
    "a token tells two apart",
    '  - { id: a, source: [10.0.0.1], token: "${env:A}", network: disabled }\n  - { id: b, source: [10.0.0.1], network: disabled }\n',
  ],
  [
    "an empty source",
    "  - { id: a, source: [], network: disabled }\n",
    "3:22 `source` is empty, so no client can match; leave it out or list some",
  ],
  [
    "a source that is no range",
    "  - { id: a, source: [10.0.0.1/8], network: disabled }\n",
    "3:23 A range must begin at its first address: write `10.0.0.0/8`",
  ],
  [
    "a short token",
    "  - { id: a, token: hunter2, network: disabled }\n",
    "3:21 warning: `token` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
    "3:21 warning: `token` is shorter than 16 characters and can be guessed",
  ],
  [
    "a bad token",
    '  - { id: a, token: "${nope}", network: disabled }\n',
    "3:21 `token` has a `${…}` that is neither `${env:NAME}` nor `${file:PATH}`; a literal `$` is written `$$`",
  ],
  [
    "no network",
    "  - { id: a, source: [10.0.0.1] }\n",
    "3:5 warning: This sandbox has no `network`, so everything is refused to it",
  ],
  [
    "interface and mac are not checked here",
    '  - { id: a, source: [10.0.0.1], interface: sbx0, mac: "02:00:00:00:00:11", network: disabled }\n',
    "3:34 warning: `interface` is not checked at the proxy's door: `source` and `token` are",
    "3:51 warning: `mac` is not checked at the proxy's door: `source` and `token` are",
  ],
  [
    "an interface that is none",
    "  - { id: a, source: [10.0.0.1], interface: a/b, network: disabled }\n",
    "3:45 `interface` must be the name of an interface",
  ],
  [
    "a mac that is none",
    "  - { id: a, source: [10.0.0.1], mac: 02-00, network: disabled }\n",
    "3:39 `mac` must be a MAC address such as `02:00:00:00:00:11`",
  ],
  [
    "an unknown key",
    "  - { id: a, source: [10.0.0.1], netwrk: disabled }\n",
    "3:5 warning: This sandbox has no `network`, so everything is refused to it",
    "3:34 Unknown key `netwrk`; did you mean `network`?",
  ],
  [
    "an entry that is no map",
    "  - a\n",
    "3:5 An entry of `sandboxes` must be a map of keys and values, found text",
  ],
  ["no list", "  a: 1\n", "3:3 `sandboxes` must be a list, found a map"],
]);
