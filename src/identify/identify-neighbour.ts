/** Who sends by way of the gateway: a sandbox known by its address and by the interface that it came in by. Pure. */
import { matchesInterface } from "../base/interface-name.ts";
import { parseIpAddress, rangeContains } from "../base/ip.ts";
import type { Client } from "../model/exchange.ts";
import type { SandboxSource } from "../model/policy.ts";

export interface NeighbourClaims {
  /** The peer's address, canonical text. */
  readonly address: string;
  /** Undefined where it cannot be told, as of a datagram: then the firewall alone holds address and interface together. */
  readonly interface: string | undefined;
}

/**
 * The client, or undefined where it came by none of the gateway's interfaces, or is not one sandbox alone.
 *
 * A sandbox's `interface` that is none of the gateway's is the port of a bridge, which the firewall holds it to.
 */
export function identifyNeighbour(
  claims: NeighbourClaims,
  sandboxes: readonly SandboxSource[],
  interfaces: readonly string[],
): Client | undefined {
  const { address } = claims;
  if (claims.interface !== undefined && !matchesInterface(interfaces, claims.interface)) return undefined;
  if (sandboxes.length === 0) return { sandbox: undefined, address };
  const found = sandboxes.filter((sandbox) => isIt(sandbox, claims, interfaces));
  const [sandbox] = found;
  return sandbox === undefined || found.length > 1 ? undefined : { sandbox: sandbox.id, address };
}

function isIt(sandbox: SandboxSource, claims: NeighbourClaims, interfaces: readonly string[]): boolean {
  const ip = parseIpAddress(claims.address);
  if (ip === undefined || !sandbox.source.some((range) => rangeContains(range, ip))) return false;
  const { interface: own } = sandbox;
  if (own === undefined || claims.interface === undefined || !matchesInterface(interfaces, own)) return true;
  return own === claims.interface;
}
