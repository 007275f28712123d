/** The chains that hold a source to the interface and the MAC address of its sandbox. Pure. */
import { matchesInterface } from "../base/interface-name.ts";
import type { GatewayEndpoint } from "../model/config.ts";
import type { SandboxSource } from "../model/policy.ts";
import { OWN_LINK, rangesOf } from "./nft-ranges.ts";
import { baseChain, chain, dropped, entering, quoted, setOf } from "./nft-syntax.ts";

const FAMILIES = [
  { family: 4, field: "ip", own: [] },
  { family: 6, field: "ip6", own: OWN_LINK },
] as const;
type Family = (typeof FAMILIES)[number];

/**
 * A source that does not lead back by the same interface, or that belongs to a sandbox elsewhere, is a lie. Each line is
 * one look-up, however many sandboxes there are.
 */
export function identityChains(
  { interfaces }: GatewayEndpoint,
  sandboxes: readonly SandboxSource[],
): string[] {
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
