/** Addresses and ranges of the config file, and the ranges that it may not open. Pure. */
import { formatRange, ipFromOctets, parseIpAddress, parseRange, rangesOverlap } from "../base/ip.ts";
import { classifyAddress, neverOpens } from "../decide/address-class.ts";
import type { IpAddress } from "../model/exchange.ts";
import type { AddressRange } from "../model/policy.ts";
import { readTexts } from "./expect.ts";
import { quoteName, type Report } from "./report.ts";
import type { Position, TreeNode } from "./tree.ts";

export interface PlacedRange {
  readonly range: AddressRange;
  readonly at: Position;
}

/** A range that touches these was not meant: nobody opens half of multicast. */
const UNTOUCHABLE = ["0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "::/128", "fe80::/10", "ff00::/8"].map(
  (text) => parseRange(text) as AddressRange,
);

/** Addresses (a range of one) and CIDR ranges in canonical form. */
export function readRanges(report: Report, node: TreeNode, what: string): readonly PlacedRange[] | undefined {
  return readTexts(report, node, what)?.flatMap(({ text, at }) => {
    const range = parseRange(text);
    if (range === undefined) report.error(at, explainRange(text, what));
    return range === undefined ? [] : [{ range, at }];
  });
}

/** Ranges that open addresses: none may lie in, or touch, what stays refused. */
export function readOpenRanges(report: Report, node: TreeNode, what: string): readonly AddressRange[] {
  const placed = readRanges(report, node, what) ?? [];
  for (const { range, at } of placed) {
    const touched = UNTOUCHABLE.find((other) => rangesOverlap(range, other));
    const closed = neverOpens(range) ?? (touched && classifyAddress(touched.base));
    if (closed === undefined) continue;
    report.error(at, `${what} cannot hold ${closed} addresses, which stay refused whatever is listed`);
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
  return classifyAddress(address) === "loopback";
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
