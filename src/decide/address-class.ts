/** What kind of address this is, from one table of the IANA special-purpose registries. Pure. */
import { parseRange, rangeContains, rangesOverlap } from "../base/ip.ts";
import type { IpAddress } from "../model/exchange.ts";
import type { AddressRange } from "../model/policy.ts";

export type AddressClass =
  | "public"
  | "loopback"
  | "unspecified"
  | "link-local"
  | "metadata"
  | "private"
  | "shared"
  | "multicast"
  | "broadcast"
  | "documentation"
  | "benchmarking"
  /** Carries an IPv4 address that the network in between would unwrap. */
  | "embeds-ipv4"
  | "reserved";

/** What `upstream.allow_ranges` cannot open. */
const NEVER: ReadonlySet<AddressClass> = new Set([
  "loopback",
  "unspecified",
  "link-local",
  "metadata",
  "multicast",
  "broadcast",
  "embeds-ipv4",
]);

interface Row {
  readonly range: AddressRange;
  readonly addressClass: AddressClass;
}

/**
 * The first row that holds an address decides, so a block stands below the exceptions inside it. Cloud metadata
 * first; then the IANA IPv4 and IPv6 Special-Purpose Address Registries, row for row, with what RFC 4291 and
 * RFC 5771 add. Blocks that a registry calls globally reachable and that lead to one fixed service beside the client
 * (PCP, TURN, SRP anycast; ORCHIDs, which are no locators) are reserved here.
 */
const TABLE: readonly Row[] = [
  row("168.63.129.16/32", "metadata"), // Azure WireServer
  row("169.254.169.254/32", "metadata"), // AWS, Azure, GCP, Oracle, IBM, OpenStack, DigitalOcean, Hetzner, Linode …
  row("169.254.170.2/32", "metadata"), // AWS ECS task credentials
  row("169.254.170.23/32", "metadata"), // AWS EKS pod identity
  row("169.254.0.23/32", "metadata"), // Tencent
  row("169.254.42.42/32", "metadata"), // Scaleway
  row("100.100.100.200/32", "metadata"), // Alibaba
  row("192.0.0.192/32", "metadata"), // Oracle, Classic
  row("fd00:ec2::/32", "metadata"), // AWS: ::254 instance metadata, ::23 pod identity, ::253 resolver, ::123 clock
  row("fd20:ce::254/128", "metadata"), // GCP
  row("fd00:c1::a9fe:a9fe/128", "metadata"), // Oracle
  row("fd00:42::42/128", "metadata"), // Scaleway
  row("fd00:a9fe:a9fe::1/128", "metadata"), // Linode
  row("fe80::a9fe:a9fe/128", "metadata"), // OpenStack

  row("0.0.0.0/8", "unspecified"), // RFC 791 section 3.2, RFC 1122 section 3.2.1.3
  row("10.0.0.0/8", "private"), // RFC 1918
  row("100.64.0.0/10", "shared"), // RFC 6598
  row("127.0.0.0/8", "loopback"), // RFC 1122 section 3.2.1.3
  row("169.254.0.0/16", "link-local"), // RFC 3927
  row("172.16.0.0/12", "private"), // RFC 1918
  row("192.0.0.0/24", "reserved"), // RFC 6890; inside it RFC 7335, 7600, 7723, 8155, 7050
  row("192.0.2.0/24", "documentation"), // RFC 5737
  row("192.31.196.0/24", "public"), // AS112, RFC 7535
  row("192.52.193.0/24", "public"), // AMT, RFC 7450
  row("192.88.99.0/24", "reserved"), // 6to4 relay anycast, RFC 7526
  row("192.168.0.0/16", "private"), // RFC 1918
  row("192.175.48.0/24", "public"), // AS112, RFC 7534
  row("198.18.0.0/15", "benchmarking"), // RFC 2544
  row("198.51.100.0/24", "documentation"), // RFC 5737
  row("203.0.113.0/24", "documentation"), // RFC 5737
  row("224.0.0.0/4", "multicast"), // RFC 5771
  row("255.255.255.255/32", "broadcast"), // RFC 8190, RFC 919 section 7
  row("240.0.0.0/4", "reserved"), // RFC 1112 section 4
  row("0.0.0.0/0", "public"),

  row("::1/128", "loopback"), // RFC 4291
  row("::/128", "unspecified"), // RFC 4291
  row("::/96", "embeds-ipv4"), // IPv4-compatible, RFC 4291 section 2.5.5.1
  row("::ffff:0:0:0/96", "embeds-ipv4"), // IPv4-translated, RFC 2765 section 2.1
  row("64:ff9b::/96", "embeds-ipv4"), // NAT64, RFC 6052
  row("64:ff9b:1::/48", "embeds-ipv4"), // NAT64 of this network, RFC 8215
  row("100::/64", "reserved"), // discard, RFC 6666
  row("100:0:0:1::/64", "reserved"), // dummy, RFC 9780
  row("2001::/32", "embeds-ipv4"), // Teredo, RFC 4380
  row("2001:2::/48", "benchmarking"), // RFC 5180
  row("2001:3::/32", "public"), // AMT, RFC 7450
  row("2001:4:112::/48", "public"), // AS112, RFC 7535
  row("2001::/23", "reserved"), // RFC 2928; inside it RFC 7723, 8155, 9665, 4843, 7343, 9374
  row("2001:db8::/32", "documentation"), // RFC 3849
  row("2002::/16", "embeds-ipv4"), // 6to4, RFC 3056
  row("2620:4f:8000::/48", "public"), // AS112, RFC 7534
  row("3fff::/20", "documentation"), // RFC 9637
  row("5f00::/16", "reserved"), // SRv6 segments, RFC 9602
  row("fc00::/7", "private"), // unique local, RFC 4193
  row("fe80::/10", "link-local"), // RFC 4291
  row("fec0::/10", "private"), // site-local, deprecated by RFC 3879
  row("ff00::/8", "multicast"), // RFC 4291
  row("2000::/3", "public"), // the one block of global unicast that IANA assigns from
];

export function classifyAddress(address: IpAddress): AddressClass {
  for (const { range, addressClass } of TABLE) if (rangeContains(range, address)) return addressClass;
  // IPv6 that IANA assigned to nobody (RFC 4291 section 2.4).
  return "reserved";
}

/** Whether `upstream.allow_ranges` can never open an address of this class. */
export function isNeverOpen(addressClass: AddressClass): boolean {
  return NEVER.has(addressClass);
}

/**
 * Why a range may not be listed in `upstream.allow_ranges`: the class that it lies in whole, so that listing it opens
 * nothing, or `loopback` wherever it touches that. Undefined: it may.
 */
export function neverOpens(range: AddressRange): AddressClass | undefined {
  const found = TABLE.find((each) =>
    each.addressClass === "loopback"
      ? rangesOverlap(each.range, range)
      : isNeverOpen(each.addressClass) && holds(each.range, range),
  );
  return found?.addressClass;
}

function holds(outer: AddressRange, inner: AddressRange): boolean {
  return inner.prefixBits >= outer.prefixBits && rangeContains(outer, inner.base);
}

function row(text: string, addressClass: AddressClass): Row {
  return { range: parseRange(text) as AddressRange, addressClass };
}
