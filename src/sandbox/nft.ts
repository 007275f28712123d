/** Writes the gateway's nft tables from a config. Pure: the same config, the same text. */
import type { Config, GatewayEndpoint } from "../model/config.ts";
import { apartChain, type NftOptions, portChains } from "./nft-bridge.ts";
import { identityChains } from "./nft-identity.ts";
import { baseChain, chain, entering } from "./nft-syntax.ts";

/** One for each family; a host's network namespace has one gateway. */
const NFT_TABLES = ["inet sallyport", "bridge sallyport"] as const;

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
