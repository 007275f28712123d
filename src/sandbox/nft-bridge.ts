/** The chains of a shared bridge: what a sandbox may put on its port, and that ports are kept apart. Pure. */
import { matchesInterface } from "../base/interface-name.ts";
import type { GatewayEndpoint } from "../model/config.ts";
import type { SandboxSource } from "../model/policy.ts";
import { OWN_LINK, rangesOf } from "./nft-ranges.ts";
import { baseChain, chain, dropped, quoted, setOf } from "./nft-syntax.ts";

export interface NftOptions {
  /** Whether the kernel can tell bridges apart (nft_meta_bridge), so that ports nobody named are kept apart too. */
  readonly bridgeNames: boolean;
}

/** Bridge hooks: before the bridge learns from a frame whose address it is not. */
const BRIDGE_FIRST = -300;

/** What a sandbox may put on its port of a shared bridge: frames of its own, and claims to its own addresses. */
export function portChains({ interfaces }: GatewayEndpoint, sandboxes: readonly SandboxSource[]): string[] {
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
export function apartChain(
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
