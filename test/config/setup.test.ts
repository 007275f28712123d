/** A sandbox's namespace and variables. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nsandboxes:\n";

test("readNetns, readVariables: they are kept beside the policy, by the sandbox's id", () => {
  const { sandboxes } = configOf(
    `${HEAD}  - { id: a, netns: ../netns/a, network: disabled }\n` +
      '  - { id: b, source: [10.0.0.1], env: { A: "x y", EMPTY: "" }, network: disabled }\n',
  );
  assert.deepEqual(sandboxes, [
    { id: "a", netns: "/etc/netns/a", env: {} },
    { id: "b", netns: undefined, env: { A: "x y", EMPTY: "" } },
  ]);
});

testProblems("readNetns", HEAD, [
  ["a path is enough to know a sandbox by", "  - { id: a, netns: /run/netns/a, network: disabled }\n"],
  [
    "a list is no path",
    "  - { id: a, netns: [a], network: disabled }\n",
    "3:21 `netns` must be text, found a list",
  ],
]);

testProblems("readVariables", `${HEAD}  - id: a\n    source: [10.0.0.1]\n    network: disabled\n    env:`, [
  ["text as it is", ' { NODE_ENV: production, PRICE: "$5" }\n'],
  ["a name that is none", " { A-B: c }\n", "6:12 This is not the name of a variable"],
  [
    "values that are none",
    " { A: [c], B: { x: y }, C: 1, D: { credential: x }, E: { credential: [x] }, F: [] }\n",
    "6:15 A variable must be text, found a list",
    "6:23 `credential` is missing here",
    "6:25 Unknown key `x` in a variable; known are `credential`",
    "6:36 A variable must be text, found a number; put it in quotes",
    "6:56 No credential has the id `x`",
    "6:78 `credential` must be text, found a list",
    "6:88 A variable must be text, found a list",
  ],
  [
    "a secret, which would be inside",
    ' { A: "Bearer ${env:T}", B: "${file:t}" }\n',
    "6:15 A variable is plain text: a secret in it would be inside the sandbox",
    "6:37 A variable is plain text: a secret in it would be inside the sandbox",
  ],
  ["a NUL", ' { A: "a\\0b" }\n', "6:15 A variable must not hold a NUL"],
  ["no map", " [A]\n", "6:10 `env` must be a map of variables"],
]);
