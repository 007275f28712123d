/** The operator's hooks: every key, its default, and what is said where it is wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
const GATE = '{ name: gate, type: command, command: [/opt/gate, --strict], domains: ["*"] }';

test("readHooks: a program, with the defaults", () => {
  const { policy } = configOf(`${HEAD}hooks: [ ${GATE} ]\n`);
  assert.deepEqual(policy.hooks, [
    {
      name: "gate",
      domains: [{ kind: "any" }],
      timeout: 5_000,
      maySet: [],
      points: ["pre_tool_call", "post_tool_call"],
      handler: { kind: "command", command: ["/opt/gate", "--strict"] },
    },
  ]);
});

test("readHooks: a server, with every key", () => {
  const { policy } = configOf(
    `${HEAD}hooks:
  - name: central
    type: http
    url: "https://policy.example.com:8443/decide?v=1"
    domains: ["*.example.org", 10.20.0.5, a.example.org]
    points: [pre_tool_call]
    timeout: 250ms
    may_set: [X-Trace, X_Other]
`,
  );
  const [hook] = policy.hooks;
  assert.deepEqual(hook?.handler, {
    kind: "http",
    scheme: "https",
    destination: { kind: "name", host: "policy.example.com", port: 8_443 },
    target: "/decide?v=1",
  });
  assert.deepEqual(
    [hook?.timeout, hook?.maySet, hook?.points],
    [250, ["X-Trace", "X_Other"], ["pre_tool_call"]],
  );
  assert.deepEqual(
    hook?.domains.map(({ kind }) => kind),
    ["wildcard", "address", "exact"],
  );
});

test("readHooks: a server beside the gate may be asked in clear text", () => {
  const { policy } = configOf(
    `${HEAD}hooks: [ { name: a, type: http, url: "http://127.0.0.1:9000", domains: ["*"] } ]\n`,
  );
  const [hook] = policy.hooks;
  assert.ok(hook?.handler.kind === "http" && hook.handler.destination.kind === "address");
  assert.deepEqual([hook.handler.destination.address.text, hook.handler.target], ["127.0.0.1", "/"]);
});

test("readHookOptions: the defaults all deny, and each can be set", () => {
  assert.deepEqual(configOf(HEAD).policy.hookOptions, {
    mode: "enforce",
    profile: "sequential/first_deny",
    onApproval: "stop",
    onTransformConflict: "deny",
    onDisagreement: "deny",
  });
  const text =
    "{ composition: parallel/unanimous, mode: evaluate_only, on_approval: resume, on_transform_conflict: approval, on_disagreement: approval }";
  assert.deepEqual(configOf(`${HEAD}hook_options: ${text}\n`).policy.hookOptions, {
    mode: "evaluate_only",
    profile: "parallel/unanimous",
    onApproval: "resume",
    onTransformConflict: "approval",
    onDisagreement: "approval",
  });
});

const URL_FORM =
  "`url` must begin with `http://` or `https://` and a host, without user, password or fragment";
testProblems("readHooks", `${HEAD}hooks:`, [
  ["none at all is fine", " []\n"],
  ["no list", " x\n", "3:8 `hooks` must be a list, found text"],
  ["an entry that is no map", " [x]\n", "3:9 A hook must be a map of keys and values, found text"],
  [
    "an empty one",
    " [{}]\n",
    "3:9 `name` is missing here",
    "3:9 `domains` is missing here",
    "3:9 `type` is missing here",
  ],
  [
    "a type without its target, and with the other's",
    ' [{ name: a, type: http, command: [x], domains: ["*"] }]\n',
    "3:9 A hook of type `http` needs a `url`",
    "3:32 A hook of type `http` has no `command`",
  ],
  [
    "an empty command",
    ' [{ name: a, type: command, command: [], domains: ["*"] }]\n',
    "3:44 `command` must be a list of words: the program, then its arguments",
  ],
  [
    "a command with NUL",
    ' [{ name: a, type: command, command: ["a\\0b"], domains: ["*"] }]\n',
    "3:44 `command` must be a list of words: the program, then its arguments",
  ],
  [
    "a command that is no list",
    ' [{ name: a, type: command, command: x, domains: ["*"] }]\n',
    "3:44 `command` must be a list, found text",
  ],
  [
    "a URL of another scheme",
    ' [{ name: a, type: http, url: "ftp://x/", domains: ["*"] }]\n',
    `3:37 ${URL_FORM}`,
  ],
  [
    "a URL with a password",
    ' [{ name: a, type: http, url: "https://u:p@x/", domains: ["*"] }]\n',
    `3:37 ${URL_FORM}`,
  ],
  [
    "a URL that is no text",
    ' [{ name: a, type: http, url: 7, domains: ["*"] }]\n',
    "3:37 `url` must be text, found a number; put it in quotes",
  ],
  [
    "clear text to another machine",
    ' [{ name: a, type: http, url: "http://policy.example.com/", domains: ["*"] }]\n',
    "3:37 warning: This hook is asked in clear text, so whoever is in between may answer for it",
  ],
  [
    "domains that are none",
    " [{ name: a, type: command, command: [x], domains: [] }]\n",
    "3:58 `domains` is empty, so the hook would never be asked",
  ],
  [
    "a domain that is none",
    ' [{ name: a, type: command, command: [x], domains: ["a.*.b"] }]\n',
    "3:59 A `*` stands alone or as the whole first label",
  ],
  [
    "points that are none, and one of nobody's",
    ' [{ name: a, type: command, command: [x], domains: ["*"], points: [] }, { name: b, type: command, command: [x], domains: ["*"], points: [output] }]\n',
    "3:73 `points` is empty, so the hook would never be asked",
    "3:144 `points` must be `pre_tool_call` or `post_tool_call`",
  ],
  [
    "a time without its unit",
    ' [{ name: a, type: command, command: [x], domains: ["*"], timeout: 5 }]\n',
    "3:74 `timeout` must be a time from 100ms to 10m, with its unit, such as `10s` or `250ms`",
  ],
  [
    "a name twice",
    '\n  - { name: a, type: command, command: [x], domains: ["*"] }\n  - { name: a, type: command, command: [x], domains: ["*"] }\n',
    "5:5 The name `a` is taken by the hook on line 4",
  ],
]);

testProblems(
  "readMaySet",
  `${HEAD}hooks: [{ name: a, type: command, command: [x], domains: ["*"], may_set: `,
  [
    [
      "fields that nobody may set",
      "[Host] }]\n",
      "3:75 A hook cannot set `Host`: it is where the request goes, which was decided",
    ],
    [
      "a cookie",
      "[Cookie] }]\n",
      "3:75 A hook cannot set `Cookie`: it is the client's own word of who it is",
    ],
    [
      "an override",
      "[X_HTTP_Method_Override] }]\n",
      "3:75 A hook cannot set `X_HTTP_Method_Override`: it overrides the method or URL that was decided",
    ],
    ["no field name", '["a b"] }]\n', "3:75 A hook cannot set `a b`: it is not a field name"],
    [
      "a name that no transform could say",
      '["a.b"] }]\n',
      "3:75 A hook cannot set `a.b`: it has other characters than letters, digits, `-` and `_`",
    ],
    ["one twice", "[X-A, x_a] }]\n", "3:80 A hook cannot set `x_a`: it is listed twice"],
  ],
);

testProblems("checkInjected", "version: 1\n", [
  [
    "a field that an entry injects",
    'network: { allowlist: [{ domain: a.example, transform: { X-Trace: a } }] }\nhooks: [{ name: a, type: command, command: [x], domains: ["*"], may_set: [x_trace] }]\n',
    "3:1 The hook `a` cannot set `x_trace`: an entry injects it",
  ],
  [
    "one that a sandbox's entry injects",
    'network: disabled\nsandboxes: [{ id: s, source: [10.0.0.1], network: { allowlist: [{ domain: a.example, transform: { X-Trace: a } }] } }]\nhooks: [{ name: a, type: command, command: [x], domains: ["*"], may_set: [X-Trace] }]\n',
    "4:1 The hook `a` cannot set `X-Trace`: an entry injects it",
  ],
]);

testProblems("readHookOptions", `${HEAD}hook_options:`, [
  ["an empty one is fine", "\n"],
  ["no map", " x\n", "3:15 `hook_options` must be a map of keys and values, found text"],
  [
    "a profile of nobody's",
    " { composition: quorum }\n",
    "3:30 `composition` must be one of `sequential/first_deny`, `sequential/run_all`, `parallel/strictest`, `parallel/unanimous`",
  ],
  ["an unknown key", " { modes: enforce }\n", "3:17 Unknown key `modes`; did you mean `mode`?"],
]);
