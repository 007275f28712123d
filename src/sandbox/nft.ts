/** Writes the gateway's nft tables from a config. Pure: the same config, the same text. */
import { matchesInterface } from "../base/interface-name.ts";
import { formatRange, rangesOverlap } from "../base/ip.ts";
import type { Config, GatewayEndpoint } from "../model/config.ts";
import type { AddressRange, SandboxSource } from "../model/policy.ts";

export interface NftOptions {
  /** Whether the kernel can tell bridges apart (nft_meta_bridge), so that ports nobody named are kept apart too. */
  readonly bridgeNames: boolean;
}

/** One for each family; a host's network namespace has one gateway. */
const NFT_TABLES = ["inet sallyport", "bridge sallyport"] as const;

/** The addresses that everybody has, or has before it has any (RFC 4861 section 4.3). */
const OWN_LINK = ["fe80::/10", "::"];
const FAMILIES = [
  { family: 4, field: "ip", own: [] },
  { family: 6, field: "ip6", own: OWN_LINK },
] as const;
type Family = (typeof FAMILIES)[number];
/** Bridge hooks: before the bridge learns from a frame whose address it is not. */
const BRIDGE_FIRST = -300;

/** Takes the place of the tables in one transaction, so that no packet finds none. */
export function renderTables(gateway: GatewayEndpoint, config: Config, options: NftOptions): string {
  const { sandboxes } = config.policy;
  return [
    ...NFT_TABLES.flatMap((table) => [`table ${table} {}`, `delete table ${table}`]),
    `table ${NFT_TABLES[0]} {`,
    ...identityChains(gateway, sandboxes),
    ...redirectChains(gateway),
    ...guardChains(gateway),
    ...closedChain(gateway),
    "}",
    `table ${NFT_TABLES[1]} {`,
    ...portChains(gateway, sandboxes),
    ...apartChain(gateway, sandboxes, options),
    "}",
    "",
  ].join("\n");
}

/**
 * The redirection goes, everything else stays. The chain is emptied and not deleted: with the last chain of its type
 * the kernel would stop translating connections that are still open.
 */
export function renderRelease(): string {
  return `flush chain ${NFT_TABLES[0]} steering\n`;
}

/** Works whether they are there or not. */
export function renderRemoval(): string {
  const lines = NFT_TABLES.flatMap((table) => [`table ${table} {}`, `delete table ${table}`]);
  return `${lines.join("\n")}\n`;
}

/**
 * A source that does not lead back by the same interface, or that belongs to a sandbox elsewhere, is a lie. Each line is
 * one look-up, however many sandboxes there are.
 */
function identityChains({ interfaces }: GatewayEndpoint, sandboxes: readonly SandboxSource[]): string[] {
  return [
    ...baseChain("identity", "filter hook prerouting priority raw", entering(interfaces, "jump known")),
    ...chain("known", [
      "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } return",
      "fib saddr . iif oif missing drop",
      ...FAMILIES.flatMap((family) => [
        ...linkLines(family, interfaces, sandboxes),
        ...macLines(family, sandboxes),
      ]),
    ]),
  ];
}

/** An address of a sandbox that has an interface comes by that. */
function linkLines(
  { family, field }: Family,
  interfaces: readonly string[],
  sandboxes: readonly SandboxSource[],
): string[] {
  const bound = sandboxes.flatMap((sandbox) => {
    const { interface: via } = sandbox;
    if (via === undefined || !matchesInterface(interfaces, via)) return [];
    return rangesOf(sandbox, family).map((range) => ({ range, pair: `${range} . ${quoted(via)}` }));
  });
  return held(
    `${field} saddr`,
    `${field} saddr . iifname`,
    bound.map(({ range, pair }) => [range, pair]),
  );
}

/** An address and a MAC address that belong together come together, either way round. */
function macLines({ family, field, own }: Family, sandboxes: readonly SandboxSource[]): string[] {
  const bound = sandboxes.flatMap((sandbox) =>
    sandbox.mac === undefined ? [] : [{ sandbox, mac: sandbox.mac }],
  );
  const pairs = bound.flatMap(({ sandbox, mac }) =>
    rangesOf(sandbox, family).map((range) => ({ range, mac, pair: `${range} . ${mac}` })),
  );
  const others = bound.filter(({ sandbox }) => rangesOf(sandbox, family).length === 0);
  const links = [...new Set(pairs.map(({ mac }) => mac))].flatMap((mac) =>
    own.map((range) => ({ mac, pair: `${range} . ${mac}` })),
  );
  return [
    ...held(
      `${field} saddr`,
      `${field} saddr . ether saddr`,
      pairs.map(({ range, pair }) => [range, pair]),
    ),
    ...held(
      "ether saddr",
      `${field} saddr . ether saddr`,
      [...pairs, ...links].map(({ mac, pair }) => [mac, pair]),
    ),
    ...dropped(
      "ether saddr",
      others.map(({ mac }) => mac),
      ` meta nfproto ipv${family}`,
    ),
  ];
}

/** What is one of the first must be in one of the pairs. */
function held(first: string, both: string, bound: readonly (readonly [string, string])[]): string[] {
  if (bound.length === 0) return [];
  const firsts = setOf(bound.map(([value]) => value));
  return [`${first} ${firsts} ${both} != ${setOf(bound.map(([, pair]) => pair))} drop`];
}

function dropped(field: string, values: readonly string[], more = ""): string[] {
  return values.length === 0 ? [] : [`${field} ${setOf(values)}${more} drop`];
}

/** Before the translations of others, such as the published ports of containers: the first one decides. */
function redirectChains({ address, dns, interfaces }: GatewayEndpoint): string[] {
  return [
    ...baseChain("steering", "nat hook prerouting priority dstnat - 1", entering(interfaces, "goto steer")),
    ...chain("steer", [
      `udp dport 53 redirect to :${dns.port}`,
      `tcp dport 53 redirect to :${dns.port}`,
      `meta l4proto tcp redirect to :${address.port}`,
    ]),
  ];
}

/** In prerouting, so that it holds for what would be forwarded and for the host's own ports alike. */
function guardChains({ address, dns, interfaces }: GatewayEndpoint): string[] {
  return [
    ...baseChain("guard", "filter hook prerouting priority filter", entering(interfaces, "goto only")),
    ...chain("only", [
      `ct status dnat fib daddr type local tcp dport { ${address.port}, ${dns.port} } accept`,
      `ct status dnat fib daddr type local udp dport ${dns.port} accept`,
      "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
      // At once, so that QUIC falls back to TCP and does not wait.
      "meta l4proto udp reject with icmpx port-unreachable",
      "drop",
    ]),
  ];
}

/** Our ports are for redirected traffic: nobody else reaches them, from whichever side. */
function closedChain({ address, dns, interfaces }: GatewayEndpoint): string[] {
  return baseChain("closed", "filter hook input priority filter", [
    ...entering(interfaces, "accept"),
    `tcp dport { ${address.port}, ${dns.port} } drop`,
    `udp dport ${dns.port} drop`,
  ]);
}

/** What a sandbox may put on its port of a shared bridge: frames of its own, and claims to its own addresses. */
function portChains({ interfaces }: GatewayEndpoint, sandboxes: readonly SandboxSource[]): string[] {
  const ports = sandboxes.flatMap((sandbox) => {
    const { interface: via } = sandbox;
    return via === undefined || matchesInterface(interfaces, via) ? [] : [{ sandbox, via }];
  });
  const chosen = ports.map(({ via }, at) => `${quoted(via)} : goto port_${at}`);
  const v4 = ports.flatMap(({ sandbox }) => rangesOf(sandbox, 4));
  const macs = ports.flatMap(({ sandbox: { mac } }) => (mac === undefined ? [] : [mac]));
  return [
    ...baseChain("ports", `filter hook prerouting priority ${BRIDGE_FIRST}`, [
      ...(chosen.length === 0 ? [] : [`iifname vmap ${setOf(chosen)}`]),
      // What a sandbox has to itself, at any other port.
      ...dropped("ip saddr", v4),
      ...dropped("arp saddr ip", v4),
      ...dropped(
        "ip6 saddr",
        ports.flatMap(({ sandbox }) => rangesOf(sandbox, 6)),
      ),
      ...dropped("ether saddr", macs),
    ]),
    ...ports.flatMap(({ sandbox }, at) => chain(`port_${at}`, portLines(sandbox))),
  ];
}

function portLines(sandbox: SandboxSource): string[] {
  const { source, mac } = sandbox;
  const v4 = rangesOf(sandbox, 4);
  const v6 = rangesOf(sandbox, 6);
  return [
    // A tag would hide the rest of the frame from these rules.
    "ether type { 8021q, 8021ad } drop",
    ...(mac === undefined ? [] : [`ether saddr != ${mac} drop`, `arp saddr ether != ${mac} drop`]),
    v4.length === 0 ? "ether type ip drop" : `ip saddr != ${setOf(v4)} drop`,
    v4.length === 0 ? "ether type arp drop" : `arp saddr ip != ${setOf([...v4, "0.0.0.0"])} drop`,
    ...(v6.length === 0
      ? ["ether type ip6 drop"]
      : [
          `ip6 saddr != ${setOf([...v6, ...OWN_LINK])} drop`,
          ...source
            .filter(({ base }) => base.family === 6)
            .map(({ base, prefixBits }) => advertOf(base.octets, prefixBits)),
          "icmpv6 type nd-neighbor-advert @th,64,10 == 0x3fa accept",
          "icmpv6 type nd-neighbor-advert drop",
        ]),
  ];
}

/** A neighbour advertisement for this range: its target begins 8 bytes into ICMPv6 (RFC 4861 section 4.4). */
function advertOf(octets: Uint8Array, prefixBits: number): string {
  const bits = BigInt(`0x${Buffer.from(octets).toString("hex")}`) >> BigInt(128 - prefixBits);
  const target = prefixBits === 0 ? "" : ` @th,64,${prefixBits} == 0x${bits.toString(16)}`;
  return `icmpv6 type nd-neighbor-advert${target} accept`;
}

/** On a shared bridge nothing goes from port to port: a sandbox has the host to talk to, and nobody else. */
function apartChain(
  { interfaces }: GatewayEndpoint,
  sandboxes: readonly SandboxSource[],
  { bridgeNames }: NftOptions,
): string[] {
  const ports = sandboxes.flatMap(({ interface: via }) =>
    via === undefined || matchesInterface(interfaces, via) ? [] : [quoted(via)],
  );
  const macs = sandboxes.flatMap(({ mac }) => (mac === undefined ? [] : [mac]));
  const bridges = interfaces.map((pattern) => `meta ibrname ${quoted(pattern)} drop`);
  return baseChain("apart", "filter hook forward priority filter", [
    ...(bridgeNames ? bridges : []),
    ...dropped("iifname", ports),
    ...dropped("oifname", ports),
    ...dropped("ether saddr", macs),
    ...dropped("ether daddr", macs),
  ]);
}

/** Without those that lie within another: the kernel wants each address once. */
function rangesOf({ source }: SandboxSource, family: 4 | 6): readonly string[] {
  const ranges = source.filter(({ base }) => base.family === family);
  const outer = ranges.filter(
    (range, at) => !ranges.some((other, place) => place !== at && holds(other, range, place < at)),
  );
  return outer.map(formatRange);
}

/** Of two that are the same, the first holds the second. */
function holds(outer: AddressRange, inner: AddressRange, first: boolean): boolean {
  const wider = outer.prefixBits < inner.prefixBits || (first && outer.prefixBits === inner.prefixBits);
  return wider && rangesOverlap(outer, inner);
}

function entering(interfaces: readonly string[], verdict: string): string[] {
  return interfaces.map((pattern) => `iifname ${quoted(pattern)} ${verdict}`);
}

function baseChain(name: string, hook: string, lines: readonly string[]): string[] {
  return chain(name, [`type ${hook}`, "policy accept", ...lines]);
}

function chain(name: string, lines: readonly string[]): string[] {
  return [`\tchain ${name} {`, ...lines.map((line) => `\t\t${line}`), "\t}"];
}

function setOf(elements: readonly string[]): string {
  return `{ ${[...new Set(elements)].join(", ")} }`;
}

/** Names are checked when the config is read: nothing in one ends the quotation. */
function quoted(name: string): string {
  return `"${name}"`;
}
