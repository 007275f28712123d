/** IP addresses and ranges: strict text in, canonical text out. Pure; `node:net` is avoided, it accepts zone ids. */
import type { IpAddress } from "../model/exchange.ts";
import type { AddressRange } from "../model/policy.ts";

/** `::ffff:0:0/96`, RFC 4291 section 2.5.5.2. */
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/**
 * Strict text: four decimal numbers without leading zeros, or RFC 4291 section 2.2 (dotted tail included). No
 * brackets, zone ids, octal, hex or short forms. An IPv4-mapped address becomes the IPv4 address that it means.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (text.length > 45) return undefined;
  const octets = text.includes(":") ? parseV6(text) : parseV4(text);
  return octets === undefined ? undefined : fromOwned(octets);
}

/** Of 4 or 16 bytes in network order, which are copied; undefined for any other length. */
export function ipFromOctets(octets: Uint8Array): IpAddress | undefined {
  if (octets.length !== 4 && octets.length !== 16) return undefined;
  return fromOwned(Uint8Array.from(octets));
}

/** Canonical text of 4 or 16 bytes: dotted decimal, or RFC 5952 with no dotted tail. */
export function formatIp(octets: Uint8Array): string {
  if (octets.length === 4) return octets.join(".");
  const view = new DataView(octets.buffer, octets.byteOffset, 16);
  const groups = Array.from({ length: 8 }, (_, index) => view.getUint16(index * 2).toString(16));
  const run = longestZeroRun(groups);
  if (run === undefined) return groups.join(":");
  return `${groups.slice(0, run.start).join(":")}::${groups.slice(run.start + run.length).join(":")}`;
}

export function sameAddress(a: IpAddress, b: IpAddress): boolean {
  return a.text === b.text;
}

/** `base/bits`, or a bare address for that one. Undefined where host bits are set: it may not mean what it says. */
export function parseRange(text: string): AddressRange | undefined {
  const slash = text.indexOf("/");
  const base = parseIpAddress(slash === -1 ? text : text.slice(0, slash));
  if (base === undefined) return undefined;
  const width = base.octets.length * 8;
  if (slash === -1) return { base, prefixBits: width };

  // Nobody can tell which family's bits `::ffff:10.0.0.0/8` counts.
  if (base.family === 4 && text.includes(":")) return undefined;
  const digits = text.slice(slash + 1);
  const prefixBits = Number(digits);
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(digits) || prefixBits > width) return undefined;
  return hostBitsClear(base.octets, prefixBits) ? { base, prefixBits } : undefined;
}

/** Canonical text, as `parseRange` reads it. */
export function formatRange(range: AddressRange): string {
  return `${range.base.text}/${range.prefixBits}`;
}

export function rangeContains(range: AddressRange, address: IpAddress): boolean {
  return (
    range.base.family === address.family && samePrefix(range.base.octets, address.octets, range.prefixBits)
  );
}

/** Whether the two share an address; ranges are aligned, so one then holds the other. */
export function rangesOverlap(a: AddressRange, b: AddressRange): boolean {
  if (a.base.family !== b.base.family) return false;
  return samePrefix(a.base.octets, b.base.octets, Math.min(a.prefixBits, b.prefixBits));
}

function fromOwned(octets: Uint8Array): IpAddress {
  const plain =
    octets.length === 16 && MAPPED_PREFIX.every((octet, index) => octets[index] === octet)
      ? octets.slice(12)
      : octets;
  return { family: plain.length === 4 ? 4 : 6, octets: plain, text: formatIp(plain) };
}

/** Four decimal numbers. */
function parseV4(text: string): Uint8Array | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return undefined;
  const octets = new Uint8Array(4);
  for (let index = 0; index < 4; index++) {
    const digits = match[index + 1] as string;
    const value = Number(digits);
    // A leading zero is octal to some parsers and decimal to others (CVE-2026-106069).
    if (value > 255 || (digits.length > 1 && digits.startsWith("0"))) return undefined;
    octets[index] = value;
  }
  return octets;
}

function parseV6(text: string): Uint8Array | undefined {
  const gap = text.indexOf("::");
  if (gap === -1) return parseGroups(text, true, 16);
  if (text.includes("::", gap + 1)) return undefined;
  const head = gap === 0 ? new Uint8Array(0) : parseGroups(text.slice(0, gap), false, undefined);
  const rest = text.slice(gap + 2);
  const tail = rest === "" ? new Uint8Array(0) : parseGroups(rest, true, undefined);
  // `::` stands for at least one group.
  if (head === undefined || tail === undefined || head.length + tail.length > 14) return undefined;
  const octets = new Uint8Array(16);
  octets.set(head);
  octets.set(tail, 16 - tail.length);
  return octets;
}

/** Groups of hex digits between colons, the last of them dotted decimal where `dotted` allows it. */
function parseGroups(text: string, dotted: boolean, length: number | undefined): Uint8Array | undefined {
  const octets: number[] = [];
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    const parsed =
      dotted && index === groups.length - 1 && group.includes(".") ? parseV4(group) : parseGroup(group);
    if (parsed === undefined) return undefined;
    octets.push(...parsed);
  }
  return length === undefined || octets.length === length ? Uint8Array.from(octets) : undefined;
}

function parseGroup(group: string): readonly number[] | undefined {
  if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
  const value = Number.parseInt(group, 16);
  return [value >> 8, value & 0xff];
}

/** The longest run of two or more zero groups, the first of equals (RFC 5952 section 4.2). */
function longestZeroRun(groups: readonly string[]): { start: number; length: number } | undefined {
  let best: { start: number; length: number } | undefined;
  let start = 0;
  for (let index = 0; index <= groups.length; index++) {
    if (groups[index] === "0") continue;
    if (index - start > Math.max(1, best?.length ?? 0)) best = { start, length: index - start };
    start = index + 1;
  }
  return best;
}

function samePrefix(a: Uint8Array, b: Uint8Array, bits: number): boolean {
  const whole = bits >> 3;
  for (let index = 0; index < whole; index++) if (a[index] !== b[index]) return false;
  const rest = bits & 7;
  return rest === 0 || ((a[whole] as number) ^ (b[whole] as number)) >> (8 - rest) === 0;
}

function hostBitsClear(octets: Uint8Array, prefixBits: number): boolean {
  return octets.every((octet, index) => {
    const free = Math.min(8, Math.max(0, (index + 1) * 8 - prefixBits));
    return (octet & ((1 << free) - 1)) === 0;
  });
}
