/** Writes the gateway's nft tables from a config. Pure: the same config, the same text. */
import { matchesInterface } from "../base/interface-name.ts";
import { formatRange } from "../base/ip.ts";
import type { Config, GatewayEndpoint } from "../model/config.ts";
import type { SandboxSource } from "../model/policy.ts";

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

/** A source that does not lead back by the same interface, or that belongs to a sandbox elsewhere, is a lie. */
function identityChains({ interfaces }: GatewayEndpoint, sandboxes: readonly SandboxSource[]): string[] {
  const known = sandboxes.flatMap((sandbox) => knownLines(sandbox, interfaces));
  return [
    ...baseChain("identity", "filter hook prerouting priority raw", entering(interfaces, "jump known")),
    ...chain("known", [
      "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } return",
      "fib saddr . iif oif missing drop",
      ...known,
    ]),
  ];
}

function knownLines(sandbox: SandboxSource, interfaces: readonly string[]): string[] {
  return FAMILIES.flatMap(({ family, field, own }) => {
    const { interface: via, mac } = sandbox;
    const ranges = rangesOf(sandbox, family);
    if (ranges.length === 0) {
      return mac === undefined ? [] : [`ether saddr ${mac} meta nfproto ipv${family} drop`];
    }
    const set = setOf(ranges);
    const direct = via !== undefined && matchesInterface(interfaces, via);
    return [
      ...(direct ? [`${field} saddr ${set} iifname != ${quoted(via)} drop`] : []),
      ...(mac === undefined
        ? []
        : [
            `${field} saddr ${set} ether saddr != ${mac} drop`,
            // The other way round: what has its MAC address has its address too.
            `ether saddr ${mac} ${field} saddr != ${setOf([...ranges, ...own])} drop`,
          ]),
    ];
  });
}

function redirectChains({ address, dns, interfaces }: GatewayEndpoint): string[] {
  return [
    ...baseChain("steering", "nat hook prerouting priority dstnat", entering(interfaces, "goto steer")),
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
      `ct status dnat tcp dport { ${address.port}, ${dns.port} } accept`,
      `ct status dnat udp dport ${dns.port} accept`,
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
  return [
    ...baseChain("ports", `filter hook prerouting priority ${BRIDGE_FIRST}`, [
      ...ports.map(({ via }, at) => `iifname ${quoted(via)} goto port_${at}`),
      ...ports.flatMap(({ sandbox }) => foreignLines(sandbox)),
    ]),
    ...ports.flatMap(({ sandbox }, at) => chain(`port_${at}`, portLines(sandbox))),
  ];
}

/** What a sandbox has to itself, at any other port. */
function foreignLines(sandbox: SandboxSource): string[] {
  const v4 = rangesOf(sandbox, 4);
  const v6 = rangesOf(sandbox, 6);
  return [
    ...(v4.length === 0 ? [] : [`ip saddr ${setOf(v4)} drop`, `arp saddr ip ${setOf(v4)} drop`]),
    ...(v6.length === 0 ? [] : [`ip6 saddr ${setOf(v6)} drop`]),
    ...(sandbox.mac === undefined ? [] : [`ether saddr ${sandbox.mac} drop`]),
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
  const lines = sandboxes.flatMap(({ interface: via, mac }) => [
    ...(via === undefined || matchesInterface(interfaces, via)
      ? []
      : [`iifname ${quoted(via)} drop`, `oifname ${quoted(via)} drop`]),
    ...(mac === undefined ? [] : [`ether saddr ${mac} drop`, `ether daddr ${mac} drop`]),
  ]);
  const bridges = interfaces.map((pattern) => `meta ibrname ${quoted(pattern)} drop`);
  return baseChain("apart", "filter hook forward priority filter", [
    ...(bridgeNames ? bridges : []),
    ...lines,
  ]);
}

function rangesOf({ source }: SandboxSource, family: 4 | 6): readonly string[] {
  return source.filter(({ base }) => base.family === family).map(formatRange);
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
  return `{ ${elements.join(", ")} }`;
}

/** Names are checked when the config is read: nothing in one ends the quotation. */
function quoted(name: string): string {
  return `"${name}"`;
}
