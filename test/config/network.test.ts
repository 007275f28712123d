/** Network sections: disabled, empty, listed; ids that stand for one entry each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const EMPTY = { kind: "allowlist", rules: [], denylist: [] };

test("readNetwork: absent, empty and `disabled` are disabled", () => {
  for (const text of [
    "",
    "network:\n",
    "network: null\n",
    "network: ~\n",
    "network: disabled\n",
    'network: "disabled"\n',
  ]) {
    assert.deepEqual(configOf(`version: 1\n${text}`).policy.network, { kind: "disabled" }, text);
  }
});

test("readNetwork: an allowlist without entries allows nothing, however it is written", () => {
  for (const text of ["{ allowlist: [] }", "{ allowlist: }", "{}", "{ allowlist: [], denylist: }"]) {
    assert.deepEqual(configOf(`version: 1\nnetwork: ${text}\n`).policy.network, EMPTY, text);
  }
});

test("readNetwork: the top-level denylist stands beside the networks, with or without an allowlist", () => {
  const { policy } = configOf(
    'version: 1\nnetwork: { denylist: [ { id: d, domain: "*.example.com", ports: [443] }, { domain: 10.0.0.1 } ] }\n',
  );
  assert.deepEqual(policy.network, EMPTY);
  assert.deepEqual(
    policy.denylist.map(({ id, ports }) => [id, ports]),
    [
      ["d", [443]],
      ["10.0.0.1", undefined],
    ],
  );
});

test("readNetwork: a disabled network has no denylist", () => {
  assert.deepEqual(configOf("version: 1\nnetwork: disabled\n").policy.denylist, []);
});

const HEAD = "version: 1\n";
testProblems("readNetwork", HEAD, [
  [
    "a word that is not `disabled` is refused",
    "network: enabled\n",
    "2:10 `network` must be `disabled` or a map with an `allowlist`",
  ],
  [
    "a list is refused",
    "network: [ { domain: a.example } ]\n",
    "2:10 `network` must be a map of keys and values, found a list",
  ],
  [
    "a mistyped key is refused, and what it means is said",
    "network: { alowlist: [] }\n",
    "2:10 warning: `network` has no entry in `allowlist`, so everything is refused",
    "2:12 Unknown key `alowlist`; did you mean `allowlist`?",
  ],
  [
    "an allowlist that is a map is refused",
    "network: { allowlist: { domain: a.example } }\n",
    "2:23 `allowlist` must be a list, found a map",
  ],
  [
    "a denylist that is text is refused",
    "network: { allowlist: [], denylist: a.example }\n",
    "2:37 `denylist` must be a list, found text",
  ],
  ["nothing at all gets a warning", "", "1:1 warning: `network` is disabled, so everything is refused"],
  ["an empty allowlist is what it says", "network: { allowlist: [] }\n"],
  [
    "a commented-out allowlist gets a warning",
    "network:\n  allowlist:\n    # - domain: a.example\n",
    "3:3 warning: `network` has no entry in `allowlist`, so everything is refused",
  ],
  [
    "a denylist alone gets one",
    "network: { denylist: [ { domain: a.example } ] }\n",
    "2:10 warning: `network` has no entry in `allowlist`, so everything is refused",
  ],
  [
    "beside sandboxes a denylist alone is meant",
    "network: { denylist: [ { domain: a.example } ] }\nsandboxes: [ { id: a, source: [10.0.0.2], network: disabled } ]\n",
  ],
  [
    "a network of a sandbox's own is not",
    "sandboxes: [ { id: a, source: [10.0.0.2], network: { denylist: [ { domain: a.example } ] } } ]\n",
    "2:52 warning: `network` has no entry in `allowlist`, so everything is refused",
  ],
  [
    "an unknown interception is refused",
    "network: { allowlist: [], intercept: no }\n",
    "2:38 `intercept` must be one of `auto`, `always`, `never`",
  ],
  [
    "an unknown key of a denial is refused",
    "network: { allowlist: [], denylist: [ { domain: a.example, port: [1] } ] }\n",
    "2:60 Unknown key `port`; did you mean `ports`?",
  ],
  [
    "a denial that is text is refused",
    "network: { allowlist: [], denylist: [a.example] }\n",
    "2:38 An entry of `denylist` must be a map of keys and values, found text",
  ],
]);

testProblems("checkIds", "version: 1\nnetwork:\n  allowlist:\n", [
  [
    "an id twice is refused",
    "    - { id: x, domain: a.example }\n    - { id: x, domain: b.example }\n",
    "5:16 The id `x` is taken by the entry on line 4",
  ],
  [
    "an id in both lists is refused",
    "    - { id: x, domain: a.example }\n  denylist: [ { id: x, domain: b.example } ]\n",
    "5:24 The id `x` is taken by the entry on line 4",
  ],
  [
    "an id that is another's domain is refused",
    "    - { id: b.example, domain: a.example }\n    - { domain: b.example }\n",
    "5:9 This entry goes by its domain, which the entry on line 4 has as its `id`",
  ],
  ["an id that is its own domain is fine", "    - { id: a.example, domain: a.example }\n"],
  [
    "entries of one domain may share its name",
    "    - { domain: a.example, methods: [GET] }\n    - { domain: a.example, methods: [PUT] }\n",
  ],
]);
