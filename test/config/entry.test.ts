/** What allow and deny entries share: ids, ports, domains, and what can never get through. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRange } from "../../src/base/ip.ts";
import { parseDomain } from "../../src/config/domain.ts";
import { hopeless } from "../../src/config/entry.ts";
import type { AddressRange } from "../../src/model/policy.ts";
import { testProblems } from "./support.ts";

const SPECIAL =
  "No wildcard covers names under `.local`, `.internal`, `.home.arpa` and `.localhost`; list the hosts";
function range(text: string): AddressRange {
  const parsed = parseRange(text);
  assert.ok(parsed !== undefined);
  return parsed;
}

const RANGES = { allowRanges: [range("10.1.0.0/16")], denyRanges: [range("10.1.9.0/24")] };

const HOPELESS: readonly (readonly [string, string | undefined])[] = [
  ["example.com", undefined],
  ["printer.local", undefined],
  ["metadata", undefined],
  ["localhost", "Names under `localhost` are refused whatever is listed"],
  ["a.localhost", "Names under `localhost` are refused whatever is listed"],
  ["*", undefined],
  ["*.example.com", undefined],
  ["*.corp", undefined],
  ["*.local", SPECIAL],
  ["*.svc.internal", SPECIAL],
  ["*.localhost", SPECIAL],
  ["*.home.arpa", SPECIAL],
  ["10.1.0.1", undefined],
  ["10.1.9.1", "`deny_ranges` holds this address"],
  ["93.184.216.34", undefined],
  ["2606:4700::1", undefined],
  ["192.168.0.1", "This address (private) is refused unless `upstream.allow_ranges` holds it"],
  ["2001:db8::1", "This address (documentation) is refused unless `upstream.allow_ranges` holds it"],
  ["127.0.0.1", "This address (loopback) is refused whatever is listed"],
  ["169.254.169.254", "This address (metadata) is refused whatever is listed"],
];

for (const [text, expected] of HOPELESS) {
  test(`hopeless: ${text} ${expected === undefined ? "can get through" : "never gets through"}`, () => {
    const parsed = parseDomain(text);
    assert.ok(parsed.ok);
    assert.equal(hopeless(parsed.pattern, RANGES), expected);
  });
}

const HEAD = "version: 1\nnetwork:\n  allowlist: [ { domain: ok.example } ]\n  denylist:\n";
testProblems("readPorts", HEAD, [
  ["ports from 1 to 65535", "    - { domain: a.example, ports: [1, 65535] }\n"],
  [
    "port 0",
    "    - { domain: a.example, ports: [0] }\n",
    "5:36 A port must be a whole number from 1 to 65535",
  ],
  [
    "port 65536",
    "    - { domain: a.example, ports: [65536] }\n",
    "5:36 A port must be a whole number from 1 to 65535",
  ],
  [
    "a port that is text",
    '    - { domain: a.example, ports: ["443"] }\n',
    "5:36 A port must be a whole number from 1 to 65535, found text",
  ],
  [
    "an octal port",
    "    - { domain: a.example, ports: [0o17] }\n",
    "5:36 A port must be a whole number from 1 to 65535",
  ],
  ["a port twice", "    - { domain: a.example, ports: [443, 443] }\n", "5:41 Port 443 is listed twice"],
  [
    "no port",
    "    - { domain: a.example, ports: [] }\n",
    "5:35 `ports` is empty, so nothing can match; leave it out or list some",
  ],
  [
    "a port alone",
    "    - { domain: a.example, ports: 443 }\n",
    "5:35 `ports` must be a list, found a number",
  ],
  ["an empty value", "    - { domain: a.example, ports: }\n", "5:35 `ports` must be a list, found nothing"],
]);

testProblems("readPattern", HEAD, [
  ["no domain", "    - { ports: [1] }\n", "5:7 An entry needs a `domain`"],
  ["an empty domain", '    - { domain: "" }\n', "5:17 `domain` must not be empty"],
  [
    "a number for a domain",
    "    - { domain: 127.1 }\n",
    "5:17 `domain` must be text, found a number; put it in quotes",
  ],
  ["a bad domain", "    - { domain: a..b }\n", "5:17 This is not a hostname"],
]);

testProblems("readId", HEAD, [
  ["an id of every character that it may have", "    - { id: aZ0._-, domain: a.example }\n"],
  [
    "an id with a blank",
    "    - { id: a b, domain: a.example }\n",
    "5:13 `id` must be 1 to 64 letters, digits, dots, hyphens or underscores",
  ],
]);
