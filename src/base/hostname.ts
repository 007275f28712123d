/** Hostnames in their one canonical form: what policy, resolver, SNI, Host and records all mean. Pure. */
import { domainToASCII, domainToUnicode } from "node:url";
import type { Hostname } from "../model/exchange.ts";

/** RFC 1035 section 2.3.4, without the root label. */
const MAX_NAME = 253;

/**
 * Labels of 1..63 that neither start nor end with a hyphen. Underscores are in use (`_dmarc`), though RFC 1123 has
 * none. The `i` flag is not used: it is for this pattern alone to say which letters are ASCII.
 */
const NAME =
  /^[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$/;

/** What the WHATWG URL standard calls a number; resolvers take such a last label for part of an IPv4 address. */
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/** RFC 6761, RFC 6762, RFC 8375 and ICANN's private-use `internal`. */
const SPECIAL_SUFFIXES = [".local", ".internal", ".home.arpa", ".localhost"];

/**
 * Reads a name as it came over the wire. ASCII alone: A-Z is lowered and one trailing dot dropped; anything else
 * that two parsers could read in two ways (percent signs, NUL, blanks, wildcards, U-labels, numbers that a resolver
 * dials as an address) is undefined.
 */
export function parseHostname(text: string): Hostname | undefined {
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  if (name.length > MAX_NAME || !NAME.test(name)) return undefined;
  const host = name.toLowerCase();
  return endsInNumber(host) ? undefined : (host as Hostname);
}

/**
 * Reads a name that a person wrote: U-labels become A-labels by UTS-46, non-transitionally. Undefined where the
 * mapping does more than lower case and compose, because then what is written is not what would match: full-width
 * letters and dots, soft hyphens, joiners, percent signs.
 */
export function parseHostnameIdn(text: string): Hostname | undefined {
  const labels = text.split(".");
  const mapped = labels.map(mapLabel);
  return mapped.includes(undefined) ? undefined : parseHostname(mapped.join("."));
}

/** `localhost` or a name under it (RFC 6761 section 6.3): never resolved, always loopback. */
export function isLocalhost(host: Hostname): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

/** A single label, or under a suffix that means something else on every network. No wildcard covers these. */
export function isSpecialUse(host: Hostname): boolean {
  if (!host.includes(".") || host === "home.arpa") return true;
  return SPECIAL_SUFFIXES.some((suffix) => host.endsWith(suffix));
}

function endsInNumber(host: string): boolean {
  const start = host.lastIndexOf(".") + 1;
  const first = host.charCodeAt(start);
  return first >= 0x30 && first <= 0x39 && NUMBER.test(host.slice(start));
}

/** The A-label of one label, or the label itself where it is ASCII already. */
function mapLabel(label: string): string | undefined {
  if (isAscii(label)) return label;
  const written = label.toLowerCase().normalize("NFC");
  // The mapping reads a URL's host: it decodes percent signs and stops at `/`. The way back shows that it did not.
  const ascii = domainToASCII(written);
  return ascii.startsWith("xn--") && domainToUnicode(ascii) === written ? ascii : undefined;
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}
