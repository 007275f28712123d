/** Injections: both forms, one value for a field, and the fields that may not be injected. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, problemsIn, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork:\n  allowlist:\n    - domain: a.example.com\n      transform:";

function injections(transform: string) {
  const { network } = configOf(`${HEAD}${transform}\n`).policy;
  assert.ok(network.kind === "allowlist");
  return network.rules[0]?.injections;
}

const BOTH = [
  { field: "Authorization", key: "authorization", secret: "network.allowlist[0].transform.Authorization" },
  { field: "X-Client", key: "x-client", secret: "network.allowlist[0].transform.X-Client" },
];

test("readTransform: a map and a list of maps mean the same, in order", () => {
  assert.deepEqual(injections(' { Authorization: "${env:A}", X-Client: b }'), BOTH);
  assert.deepEqual(injections(' [ { Authorization: "${env:A}" }, { X-Client: b } ]'), BOTH);
});

test("readTransform: nothing to inject is nothing", () => {
  assert.deepEqual(injections(" {}"), []);
  assert.deepEqual(injections(" []"), []);
});

test("readTransform: a sandbox's fields go by the sandbox's key", () => {
  const { templates } = configOf(
    'version: 1\nsandboxes:\n  - { id: a, source: [10.0.0.1], network: { allowlist: [ { domain: a.example.com, transform: { X-A: "${file:s}" } } ] } }\n',
  );
  assert.deepEqual(
    [...templates],
    [["sandboxes[0].network.allowlist[0].transform.X-A", [{ kind: "file", path: "/etc/sallyport/s" }]]],
  );
});

const FORBIDDEN = [
  "Host",
  "Content-Length",
  "Transfer-Encoding",
  "Trailer",
  "TE",
  "Connection",
  "Keep-Alive",
  "Upgrade",
  "HTTP2-Settings",
  "Proxy-Connection",
  "Proxy-Authorization",
  "Proxy-Authenticate",
  "Expect",
  "X-HTTP-Method-Override",
  "X-HTTP-Method",
  "X-Method-Override",
  "X-Original-URL",
  "X-Original-URI",
  "X-Rewrite-URL",
  "content_length",
  "X_HTTP_METHOD_OVERRIDE",
];

for (const field of FORBIDDEN) {
  test(`readTransform: ${field} is refused in any case`, () => {
    for (const name of [field, field.toLowerCase(), field.toUpperCase()]) {
      const problems = problemsIn(`${HEAD}\n        ${name}: x\n`);
      assert.equal(problems.length, 1);
      assert.match(problems[0] ?? "", /^6:9 `.+` cannot be injected: it /);
    }
  });
}

testProblems("readTransform", HEAD, [
  [
    "a pseudo-header is refused",
    ' { ":path": x }\n',
    "5:20 `:path` is a pseudo-header and cannot be injected",
  ],
  ["a name that is no token is refused", ' { "X A": x }\n', "5:20 `X A` is not a field name"],
  [
    "a name that ends a line is refused",
    ' { "X\\r\\nY": x }\n',
    "5:20 `X\\u000d\\u000aY` is not a field name",
  ],
  ["an empty name is refused", ' { "": x }\n', "5:20 `` is not a field name"],
  [
    "the same field twice is refused",
    "\n        - { X-A: a }\n        - { x-a: b }\n",
    "7:13 `x-a` is injected on line 6 already",
  ],
  ["an underscore is a hyphen", " { X-A: a, X_a: b }\n", "5:28 `X_a` is injected on line 5 already"],
  [
    "text is no transform",
    " x\n",
    "5:18 `transform` must be a map of field names and values, or a list of such maps",
  ],
  [
    "nor is a list of text",
    " [x]\n",
    "5:19 `transform` must be a map of field names and values, or a list of such maps",
  ],
  [
    "line breaks in a value are refused, unquoted",
    ' { X-A: "a\\r\\nX: b" }\n',
    "5:25 The value of `X-A` holds a line break, NUL or another control character",
  ],
]);
