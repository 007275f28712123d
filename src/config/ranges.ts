/** Addresses and ranges of the config file, and the ranges that no config may open. Pure. */
import {
  formatRange,
  ipFromOctets,
  parseIpAddress,
  parseRange,
  rangeContains,
  rangesOverlap,
} from "../base/ip.ts";
import type { IpAddress } from "../model/exchange.ts";
import type { AddressRange } from "../model/policy.ts";
import { readTexts } from "./expect.ts";
import { quoteName, type Report } from "./report.ts";
import type { Position, TreeNode } from "./tree.ts";

export interface PlacedRange {
  readonly range: AddressRange;
  readonly at: Position;
}

const LOOPBACK = ranges("127.0.0.0/8", "::1/128");

/** Refused whatever is listed, so listing them is a mistake. */
const CLOSED: readonly (readonly [string, readonly AddressRange[]])[] = [
  ["loopback", LOOPBACK],
  ["unspecified", ranges("0.0.0.0/8", "::/128")],
  ["link-local", ranges("169.254.0.0/16", "fe80::/10")],
  ["multicast", ranges("224.0.0.0/4", "ff00::/8")],
];

/** Instance metadata of the clouds outside link-local space; other addresses around them may be opened. */
const METADATA = ranges(
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd00:ec2::23",
  "fd20:ce::254",
  "fd00:c1::a9fe:a9fe",
  "fd00:42::42",
);

/** Addresses (a range of one) and CIDR ranges in canonical form. */
export function readRanges(report: Report, node: TreeNode, what: string): readonly PlacedRange[] | undefined {
  return readTexts(report, node, what)?.flatMap(({ text, at }) => {
    const range = parseRange(text);
    if (range === undefined) report.error(at, explainRange(text, what));
    return range === undefined ? [] : [{ range, at }];
  });
}

/** Ranges that open addresses: none may reach what stays refused. */
export function readOpenRanges(report: Report, node: TreeNode, what: string): readonly AddressRange[] {
  const placed = readRanges(report, node, what) ?? [];
  for (const { range, at } of placed) {
    const closed = CLOSED.find(([, set]) => set.some((other) => rangesOverlap(range, other)));
    const metadata = METADATA.find((other) => rangesOverlap(range, other));
    if (closed !== undefined) {
      report.error(at, `${what} cannot hold ${closed[0]} addresses, which stay refused whatever is listed`);
    } else if (metadata?.prefixBits === range.prefixBits) {
      report.error(at, `${what} cannot hold metadata addresses, which stay refused whatever is listed`);
    } else if (metadata !== undefined) {
      report.warn(at, `The metadata address ${metadata.base.text} in this range stays refused`);
    }
  }
  return placed.map(({ range }) => range);
}

export function readAddresses(
  report: Report,
  node: TreeNode,
  what: string,
): readonly IpAddress[] | undefined {
  return readTexts(report, node, what)?.flatMap(({ text, at }) => {
    const address = parseIpAddress(text);
    if (address === undefined) report.error(at, `Each of ${what} must be an IP address in its usual form`);
    return address === undefined ? [] : [address];
  });
}

export function isLoopback(address: IpAddress): boolean {
  return LOOPBACK.some((range) => rangeContains(range, address));
}

/** What an address is that stays refused whatever is listed; undefined for others. */
export function closedClass(address: IpAddress): string | undefined {
  if (METADATA.some((range) => rangeContains(range, address))) return "metadata";
  const closed = CLOSED.find(([, set]) => set.some((range) => rangeContains(range, address)));
  return closed?.[0];
}

function ranges(...texts: readonly string[]): readonly AddressRange[] {
  return texts.map((text) => parseRange(text) as AddressRange);
}

function explainRange(text: string, what: string): string {
  const spelling = rightSpelling(text);
  if (spelling !== undefined) return `A range must begin at its first address: write \`${spelling}\``;
  return `Each of ${what} must be an IP address or a range such as \`10.20.0.0/16\`, not ${quoteName(text)}`;
}

/** The range that holds the address before the slash, where that is all that is wrong. */
function rightSpelling(text: string): string | undefined {
  const match = /^(.*)\/([0-9]{1,3})$/.exec(text);
  const address = parseIpAddress(match?.[1] ?? "");
  if (match === null || address === undefined) return undefined;
  const bits = Number(match[2]);
  if (bits > address.octets.length * 8) return undefined;
  const octets = address.octets.map((octet, index) => {
    const kept = Math.min(8, Math.max(0, bits - index * 8));
    return octet & (0xff << (8 - kept));
  });
  const base = ipFromOctets(octets);
  return base === undefined ? undefined : formatRange({ base, prefixBits: bits });
}
