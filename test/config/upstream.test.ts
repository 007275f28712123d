/** Ranges, roots and resolvers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";

test("readUpstream: without the section nothing is added to the usual", () => {
  for (const text of ["", "upstream:\n", "upstream: { dns: }\n", "upstream: { dns: { hosts: }, proxy: }\n"]) {
    const { upstream, policy } = configOf(HEAD + text);
    assert.deepEqual(upstream, { caFile: undefined, dnsServers: [], dnsHosts: new Map() });
    assert.deepEqual([policy.allowRanges, policy.denyRanges], [[], []]);
  }
});

test("readUpstream: paths are relative to the file, servers canonical, names A-labels", () => {
  const { upstream } = configOf(
    `${HEAD}upstream:\n  ca_file: roots.pem\n  dns:\n    servers: [10.0.0.53, "FD00::53", 10.0.0.53:5353, "[fd00::0]:53"]\n    hosts: { API.internal.example.: [10.20.0.5, "fd00::5"], b\u00fccher.example: [10.0.0.1] }\n`,
  );
  assert.equal(upstream.caFile, "/etc/sallyport/roots.pem");
  assert.deepEqual(upstream.dnsServers, ["10.0.0.53", "fd00::53", "10.0.0.53:5353", "[fd00::]:53"]);
  assert.deepEqual(
    [...upstream.dnsHosts].map(([host, addresses]) => [host, addresses.map(({ text }) => text)]),
    [
      ["api.internal.example", ["10.20.0.5", "fd00::5"]],
      ["xn--bcher-kva.example", ["10.0.0.1"]],
    ],
  );
});

const SERVER = "Each of `servers` must be an address, or an address and a port such as `10.0.0.53:5353`";
testProblems("readUpstream", HEAD, [
  [
    "an unknown key",
    "upstream: { allow_range: [] }\n",
    "3:13 Unknown key `allow_range`; did you mean `allow_ranges`?",
  ],
  ["no list of ranges", "upstream: { deny_ranges: }\n", "3:26 `deny_ranges` must be a list, found nothing"],
  ["a server by name", "upstream: { dns: { servers: [dns.example.com] } }\n", `3:30 ${SERVER}`],
  ["a server at port 0", "upstream: { dns: { servers: [10.0.0.1:0] } }\n", `3:30 ${SERVER}`],
  [
    "hosts as a list",
    "upstream: { dns: { hosts: [a] } }\n",
    "3:27 `hosts` must be a map of names and lists of addresses",
  ],
  [
    "a host without an address",
    "upstream: { dns: { hosts: { a.example: [] } } }\n",
    "3:40 `a.example` needs an address",
  ],
  [
    "a host with a name for an address",
    "upstream: { dns: { hosts: { a.example: [b.example] } } }\n",
    "3:41 Each of `hosts` must be an IP address in its usual form",
  ],
  [
    "a host that is a pattern",
    'upstream: { dns: { hosts: { "*.example": [10.0.0.1] } } }\n',
    "3:29 `*.example` is not a hostname",
  ],
  [
    "the same host in two spellings",
    "upstream: { dns: { hosts: { a.example: [10.0.0.1], A.example: [10.0.0.2] } } }\n",
    "3:52 `a.example` is listed twice",
  ],
  [
    "an address alone",
    "upstream: { dns: { hosts: { a.example: 10.0.0.1 } } }\n",
    "3:40 `hosts` must be a list, found text",
  ],
  ["ca_file as a list", "upstream: { ca_file: [a] }\n", "3:22 `ca_file` must be text, found a list"],
]);
