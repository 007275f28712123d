/** Ranges: canonical form, the right spelling of others, and what no range may open. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import { isLoopback } from "../../src/config/ranges.ts";
import type { IpAddress } from "../../src/model/exchange.ts";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\nupstream:\n";

function address(text: string): IpAddress {
  const parsed = parseIpAddress(text);
  assert.ok(parsed !== undefined);
  return parsed;
}

test("readRanges: addresses are ranges of one", () => {
  const { allowRanges, denyRanges } = configOf(
    `${HEAD}  allow_ranges: [10.20.0.0/16, "fd00:1::/32", 192.168.1.5]\n  deny_ranges: [0.0.0.0/0]\n`,
  ).policy;
  assert.deepEqual(
    [...allowRanges, ...denyRanges].map(({ base, prefixBits }) => `${base.text}/${prefixBits}`),
    ["10.20.0.0/16", "fd00:1::/32", "192.168.1.5/32", "0.0.0.0/0"],
  );
});

test("isLoopback: 127.0.0.0/8 and ::1", () => {
  for (const text of ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"])
    assert.ok(isLoopback(address(text)), text);
  for (const text of ["128.0.0.1", "::2", "0.0.0.0", "10.0.0.1"]) assert.ok(!isLoopback(address(text)), text);
});

const ONE = "  allow_ranges: ";
const FORM = "Each of `allow_ranges` must be an IP address or a range such as `10.20.0.0/16`, not";
const STAYS = "which stay refused whatever is listed";
testProblems("readOpenRanges", HEAD, [
  [
    "host bits are refused, with the right spelling",
    `${ONE}[10.20.0.5/16]\n`,
    "4:18 A range must begin at its first address: write `10.20.0.0/16`",
  ],
  [
    "host bits of IPv6 too",
    `${ONE}["fd00::1/64"]\n`,
    "4:18 A range must begin at its first address: write `fd00::/64`",
  ],
  [
    "host bits within a byte too",
    `${ONE}[172.31.0.0/12]\n`,
    "4:18 A range must begin at its first address: write `172.16.0.0/12`",
  ],
  ["too many bits", `${ONE}[10.0.0.0/33]\n`, `4:18 ${FORM} \`10.0.0.0/33\``],
  ["a name", `${ONE}[corp.example]\n`, `4:18 ${FORM} \`corp.example\``],
  ["an octal address", `${ONE}[010.0.0.0/8]\n`, `4:18 ${FORM} \`010.0.0.0/8\``],
  ["text for a list", `${ONE}10.0.0.0/8\n`, "4:17 `allow_ranges` must be a list, found text"],
  ["loopback", `${ONE}[127.0.0.1]\n`, `4:18 \`allow_ranges\` cannot hold loopback addresses, ${STAYS}`],
  ["loopback of IPv6", `${ONE}["::1"]\n`, `4:18 \`allow_ranges\` cannot hold loopback addresses, ${STAYS}`],
  [
    "a part of loopback",
    `${ONE}[127.8.0.0/16]\n`,
    `4:18 \`allow_ranges\` cannot hold loopback addresses, ${STAYS}`,
  ],
  ["everything", `${ONE}[0.0.0.0/0]\n`, `4:18 \`allow_ranges\` cannot hold loopback addresses, ${STAYS}`],
  [
    "everything of IPv6",
    `${ONE}["::/0"]\n`,
    `4:18 \`allow_ranges\` cannot hold loopback addresses, ${STAYS}`,
  ],
  ["unspecified", `${ONE}[0.0.0.0]\n`, `4:18 \`allow_ranges\` cannot hold unspecified addresses, ${STAYS}`],
  [
    "link-local",
    `${ONE}[169.254.0.0/16]\n`,
    `4:18 \`allow_ranges\` cannot hold link-local addresses, ${STAYS}`,
  ],
  [
    "link-local of IPv6",
    `${ONE}["fe80::/10"]\n`,
    `4:18 \`allow_ranges\` cannot hold link-local addresses, ${STAYS}`,
  ],
  ["multicast", `${ONE}[239.1.2.3]\n`, `4:18 \`allow_ranges\` cannot hold multicast addresses, ${STAYS}`],
  [
    "a metadata address",
    `${ONE}[100.100.100.200]\n`,
    `4:18 \`allow_ranges\` cannot hold metadata addresses, ${STAYS}`,
  ],
  ["a range around one is fine", `${ONE}[100.64.0.0/10, "fc00::/7"]\n`],
  [
    "addresses that embed others",
    `${ONE}["64:ff9b::/96"]\n`,
    `4:18 \`allow_ranges\` cannot hold embeds-ipv4 addresses, ${STAYS}`,
  ],
  [
    "neighbours of what is closed are fine",
    `${ONE}[126.0.0.0/8, 128.0.0.0/16, 169.253.0.0/16, 223.0.0.0/8]\n`,
  ],
  ["deny_ranges may hold anything", "  deny_ranges: [127.0.0.0/8, 0.0.0.0/0]\n"],
  [
    "deny_ranges are canonical too",
    "  deny_ranges: [10.1.0.0/8]\n",
    "4:17 A range must begin at its first address: write `10.0.0.0/8`",
  ],
]);
