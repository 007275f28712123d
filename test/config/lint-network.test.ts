/** Warnings of entries that do nothing, and none for those that do. */
import { testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork:\n  allowlist:\n";

function shadow(line: number, by: number): string {
  return `${line}:9 warning: This entry can never match: the one on line ${by} of the same domain takes all of it`;
}

testProblems("lintShadows", HEAD, [
  ["the same entry twice", "    - { domain: a.example }\n    - { domain: a.example }\n", shadow(5, 4)],
  ["in another spelling", "    - { domain: a.example }\n    - { domain: A.EXAMPLE. }\n", shadow(5, 4)],
  [
    "conditions behind none",
    "    - { domain: a.example }\n    - { domain: a.example, methods: [GET] }\n",
    shadow(5, 4),
  ],
  [
    "none behind conditions is how it is done",
    "    - { domain: a.example, methods: [GET] }\n    - { domain: a.example }\n",
  ],
  [
    "the same conditions",
    "    - { domain: a.example, methods: [GET, PUT] }\n    - { domain: a.example, methods: [PUT, GET] }\n",
    shadow(5, 4),
  ],
  [
    "other conditions",
    "    - { domain: a.example, methods: [GET], paths: [/a] }\n    - { domain: a.example, methods: [GET], paths: [/b] }\n",
  ],
  ["other ports", "    - { domain: a.example }\n    - { domain: a.example, ports: [443, 8443] }\n"],
  [
    "some of the ports",
    "    - { domain: a.example }\n    - { domain: a.example, ports: [443] }\n",
    shadow(5, 4),
  ],
  [
    "the ports of two others",
    "    - { domain: a.example, ports: [80] }\n    - { domain: a.example, ports: [443] }\n    - { domain: a.example }\n",
    shadow(6, 4),
  ],
  [
    "another protocol",
    "    - { domain: a.example }\n    - { domain: a.example, protocol: tcp, ports: [443] }\n",
  ],
  [
    "another domain",
    '    - { domain: "*.example" }\n    - { domain: a.example }\n    - { domain: "*.a.example" }\n    - { domain: "*" }\n',
  ],
]);

testProblems("lintDenied", HEAD, [
  [
    "everything is denied",
    '    - { domain: a.example }\n  denylist: [ { domain: "*" } ]\n',
    "5:17 warning: `*` in `denylist` refuses every name, so no name in `allowlist` gets through",
  ],
  ["everything is denied, and nothing was allowed", '    []\n  denylist: [ { domain: "*" } ]\n'],
  [
    "everything is denied at one port",
    '    - { domain: a.example }\n  denylist: [ { domain: "*", ports: [80] } ]\n',
  ],
  [
    "the same name",
    "    - { domain: a.example }\n  denylist: [ { domain: A.example } ]\n",
    "4:9 warning: The denylist refuses all of this: `a.example` on line 5",
  ],
  [
    "a wildcard above",
    '    - { domain: a.b.example }\n    - { domain: "*.c.b.example" }\n    - { domain: b.example }\n  denylist: [ { domain: "*.b.example" } ]\n',
    "4:9 warning: The denylist refuses all of this: `*.b.example` on line 7",
    "5:9 warning: The denylist refuses all of this: `*.b.example` on line 7",
  ],
  [
    "a part of a wildcard is how it is done",
    '    - { domain: "*.example" }\n  denylist: [ { domain: a.example }, { domain: "*.b.example" } ]\n',
  ],
  [
    "an address",
    "    - { domain: 93.184.216.34 }\n  denylist: [ { domain: 93.184.216.34 } ]\n",
    "4:9 warning: The denylist refuses all of this: `[93.184.216.34]` on line 5",
  ],
]);

testProblems("lintNetwork", HEAD, [
  [
    "a name that is always loopback",
    "    - { domain: x.localhost }\n",
    "4:9 warning: Names under `localhost` are refused whatever is listed",
  ],
  [
    "an address that is always refused",
    "    - { domain: 127.0.0.1 }\n",
    "4:9 warning: This address (loopback) is refused whatever is listed",
  ],
  [
    "private under everything",
    '    - { domain: "*", private: true }\nupstream: { allow_ranges: [10.0.0.0/8] }\n',
    "4:9 warning: `private: true` under `*` lets any name that resolves into `allow_ranges` through",
  ],
  [
    "TRACE alone where something is injected",
    "    - { domain: a.example, methods: [TRACE], transform: { X-A: b } }\n",
    "4:9 warning: TRACE is refused where something is injected, so this entry can never match",
  ],
  ["TRACE among others", "    - { domain: a.example, methods: [TRACE, GET], transform: { X-A: b } }\n"],
]);
