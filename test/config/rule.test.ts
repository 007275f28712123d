/** Allowlist entries: defaults, conditions, and settings that contradict each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleSource } from "../../src/model/policy.ts";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork:\n  allowlist:\n";

function ruleOf(entry: string, more = ""): RuleSource {
  const { network } = configOf(`${HEAD}    - ${entry}\n${more}`).policy;
  assert.ok(network.kind === "allowlist" && network.rules[0] !== undefined);
  return network.rules[0];
}

test("readRule: what is not said has its default", () => {
  assert.deepEqual(ruleOf("domain: API.example.com"), {
    id: "API.example.com",
    pattern: { kind: "exact", host: "api.example.com" },
    ports: [80, 443],
    protocol: "http",
    methods: undefined,
    paths: undefined,
    injections: [],
    encodedSlash: false,
    private: false,
    approve: false,
    intercept: "auto",
  });
});

test("readRule: everything that can be said", () => {
  assert.deepEqual(
    ruleOf(
      '{ id: x, domain: "*.example.com", ports: [8443], protocol: http, methods: [GET, M-SEARCH, GET], paths: ["/a/.*", "/b"], encoded_slash: allow, private: true, approve: true, intercept: always, transform: { X-A: b } }',
      "upstream: { allow_ranges: [10.0.0.0/8] }\n",
    ),
    {
      id: "x",
      pattern: { kind: "wildcard", base: "example.com" },
      ports: [8443],
      protocol: "http",
      methods: ["GET", "M-SEARCH"],
      paths: ["/a/.*", "/b"],
      injections: [{ field: "X-A", key: "x-a", secret: "network.allowlist[0].transform.X-A" }],
      encodedSlash: true,
      private: true,
      approve: true,
      intercept: "always",
    },
  );
});

test("readRule: tcp takes its ports, and an entry without conditions may stay shut", () => {
  assert.equal(ruleOf("{ domain: a.example, protocol: tcp, ports: [5432] }").protocol, "tcp");
  assert.equal(ruleOf("{ domain: a.example, intercept: never }").intercept, "never");
  assert.equal(ruleOf("{ domain: a.example, intercept: never, transform: {} }").intercept, "never");
});

test("readRule: the network's intercept is the default of its entries", () => {
  assert.equal(ruleOf("{ domain: a.example }", "  intercept: always\n").intercept, "always");
  assert.equal(ruleOf("{ domain: a.example, intercept: auto }", "  intercept: never\n").intercept, "auto");
});

const INSIDE = "needs the inside of TLS, and `intercept: never` keeps it shut";
const TCP = "needs the inside of a request, and `protocol: tcp` has none";
testProblems("readRule", HEAD, [
  [
    "an unknown key is refused",
    "    - { domain: a.example, method: [GET] }\n",
    "4:28 Unknown key `method`; did you mean `methods`?",
  ],
  [
    "an entry that is text is refused",
    "    - a.example\n",
    "4:7 An entry of `allowlist` must be a map of keys and values, found text",
  ],
  [
    "methods in lower case are refused",
    "    - { domain: a.example, methods: [get] }\n",
    "4:38 A method must be a word in upper case; write `GET`",
  ],
  [
    "methods that are no words are refused",
    '    - { domain: a.example, methods: ["G T"] }\n',
    "4:38 A method must be a word in upper case",
  ],
  [
    "no method is refused",
    "    - { domain: a.example, methods: [] }\n",
    "4:37 `methods` must name at least one method, or be left out",
  ],
  [
    "an empty value is refused rather than any method",
    "    - { domain: a.example, methods: }\n",
    "4:37 `methods` must be a list, found nothing",
  ],
  [
    "a method alone is refused",
    "    - { domain: a.example, methods: GET }\n",
    "4:37 `methods` must be a list, found text",
  ],
  [
    "CONNECT gets a warning",
    "    - { domain: a.example, methods: [CONNECT, GET] }\n",
    "4:38 warning: CONNECT opens a tunnel and is never a request that `methods` judges",
  ],
  [
    "no path is refused",
    "    - { domain: a.example, paths: [] }\n",
    "4:35 `paths` must hold at least one pattern, or be left out",
  ],
  [
    "a path that is no pattern is refused",
    '    - { domain: a.example, paths: ["/a("] }\n',
    "4:36 Path pattern: Not a valid RE2 pattern (missing ): \\/a()",
  ],
  [
    "a path that looks ahead is refused",
    '    - { domain: a.example, paths: ["/a(?=b)"] }\n',
    "4:36 Path pattern: Look-ahead and look-behind are not part of RE2; list what is allowed instead",
  ],
  [
    "a path that begins without a slash gets a warning",
    "    - { domain: a.example, paths: [repos] }\n",
    "4:36 warning: A path begins with `/`, so this pattern matches nothing",
  ],
  ["a path with a query gets a warning", '    - { domain: a.example, paths: ["/a\\\\?b=1"] }\n'],
  [
    "a path that asks for a query gets a warning",
    '    - { domain: a.example, paths: ["/a?b=1"] }\n',
    "4:36 warning: The query is no part of the path that a pattern sees",
  ],
  [
    "encoded_slash without paths gets a warning",
    "    - { domain: a.example, encoded_slash: allow }\n",
    "4:28 warning: `encoded_slash` does nothing without `paths`",
  ],
  [
    "encoded_slash is allow or deny",
    "    - { domain: a.example, paths: [/a], encoded_slash: yes }\n",
    "4:56 `encoded_slash` must be `allow` or `deny`",
  ],
  [
    "private is true or false",
    "    - { domain: a.example, private: 1 }\n",
    "4:37 `private` must be true or false, found a number",
  ],
  [
    "private without ranges gets a warning",
    "    - { domain: a.example, private: true }\n",
    "4:9 warning: `private: true` opens nothing while `upstream.allow_ranges` is empty",
  ],
  [
    "an unknown protocol is refused",
    "    - { domain: a.example, protocol: udp }\n",
    "4:38 `protocol` must be `http` or `tcp`",
  ],
  [
    "tcp without ports is refused",
    "    - { domain: a.example, protocol: tcp }\n",
    "4:28 `protocol: tcp` needs its `ports`",
  ],
  [
    "tcp that is intercepted is refused",
    "    - { domain: a.example, protocol: tcp, ports: [1], intercept: always }\n",
    "4:55 `protocol: tcp` passes unseen and cannot be intercepted",
  ],
  [
    "tcp with a transform is refused",
    "    - { domain: a.example, protocol: tcp, ports: [1], transform: { X-A: b } }\n",
    `4:55 \`transform\` ${TCP}`,
  ],
  [
    "tcp with methods is refused",
    "    - { domain: a.example, protocol: tcp, ports: [1], methods: [GET] }\n",
    `4:55 \`methods\` ${TCP}`,
  ],
  [
    "never with a transform is refused",
    "    - { domain: a.example, intercept: never, transform: { X-A: b } }\n",
    `4:46 \`transform\` ${INSIDE}`,
  ],
  [
    "never with methods is refused",
    "    - { domain: a.example, intercept: never, methods: [GET] }\n",
    `4:46 \`methods\` ${INSIDE}`,
  ],
  [
    "never with paths is refused",
    "    - { domain: a.example, intercept: never, paths: [/a] }\n",
    `4:46 \`paths\` ${INSIDE}`,
  ],
  [
    "never by default with paths is refused",
    "    - { domain: a.example, paths: [/a] }\n  intercept: never\n",
    `4:28 \`paths\` ${INSIDE}`,
  ],
  [
    "an unknown interception is refused",
    "    - { domain: a.example, intercept: allways }\n",
    "4:39 `intercept` must be one of `auto`, `always`, `never`; did you mean `always`?",
  ],
]);

function inject(domain: string, more = ""): string {
  return `    - { domain: "${domain}", transform: { X-A: b }${more} }\n`;
}

const ACCEPT = "; name the hosts, or write `outsiders: accept`";
testProblems("outsiders", HEAD, [
  ["injecting under a name of one's own is fine", inject("*.example.com")],
  [
    "injecting under `*` is refused",
    inject("*"),
    "4:22 `*` cannot inject: strangers can own any name; name the hosts",
  ],
  [
    "and stays refused when accepted",
    inject("*", ", outsiders: accept"),
    "4:22 `*` cannot inject: strangers can own any name; name the hosts",
  ],
  [
    "under a top-level domain it is refused",
    inject("*.com"),
    "4:26 `*.com` cannot inject: strangers can own names under `com`; name the hosts",
  ],
  [
    "under a registry's suffix it is refused",
    inject("*.co.uk"),
    "4:28 `*.co.uk` cannot inject: strangers can own names under `co.uk`; name the hosts",
  ],
  [
    "and stays refused when accepted there too",
    inject("*.co.uk", ", outsiders: accept"),
    "4:28 `*.co.uk` cannot inject: strangers can own names under `co.uk`; name the hosts",
  ],
  [
    "under a company's suffix it is refused",
    inject("*.github.io"),
    `4:32 \`*.github.io\` cannot inject: strangers can own names under \`github.io\`${ACCEPT}`,
  ],
  ["unless accepted", inject("*.github.io", ", outsiders: accept")],
  ["below a company's suffix it is fine", inject("*.my-org.github.io")],
  ["above suffixes it is fine when accepted", inject("*.amazonaws.com", ", outsiders: accept")],
  ["without a transform any wildcard is fine", '    - { domain: "*.github.io" }\n    - { domain: "*" }\n'],
  [
    "accepting where nothing is injected gets a warning",
    '    - { domain: "*.github.io", outsiders: accept }\n',
    "4:32 warning: `outsiders` does nothing where no wildcard injects",
  ],
  [
    "there is one word for it",
    inject("*.github.io", ", outsiders: allow"),
    `4:32 \`*.github.io\` cannot inject: strangers can own names under \`github.io\`${ACCEPT}`,
    "4:66 `outsiders` must be `accept`",
  ],
]);

test("outsiders: above suffixes that lie below, injecting is refused", () => {
  const text = `${HEAD}${inject("*.amazonaws.com")}`;
  testProblemLike(
    text,
    /^4:36 `\*\.amazonaws\.com` cannot inject: strangers can own names under `.+\.amazonaws\.com`; name the hosts, or write/,
  );
});

function testProblemLike(text: string, pattern: RegExp): void {
  assert.throws(
    () => configOf(text),
    (error: Error) => pattern.test(error.message),
  );
}
