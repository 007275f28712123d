/** Decides whether an address may be dialled: the SSRF guard. Pure. */
import { rangeContains } from "../base/ip.ts";
import type { AddressDecision, Permit, Reason } from "../model/decision.ts";
import type { IpAddress } from "../model/exchange.ts";
import { classifyAddress, isNeverOpen } from "./address-class.ts";
import type { Policy } from "./policy.ts";
import { mintDialable } from "./proofs.ts";

/** What only the running gate knows of its own addresses. */
export interface Surroundings {
  /** Canonical texts of every address of this machine. */
  readonly own: ReadonlySet<string>;
  /** What the gate itself connects to (parent proxy, resolvers, hooks, admin): canonical `address port`. */
  readonly endpoints: ReadonlySet<string>;
}

/**
 * Asked once for each resolved address; the address asked about is the one that is dialled, and the port is the one
 * that was permitted.
 */
export function decideAddress(
  permit: Permit,
  address: IpAddress,
  policy: Policy,
  surroundings: Surroundings,
): AddressDecision {
  const { port } = permit.destination;
  const reason =
    refuseAddress(address, permit.mayReachPrivate, policy) ??
    (isOurs(address, port, surroundings) ? "address-not-public" : undefined);
  if (reason !== undefined) return { verdict: "deny", reason, rule: permit.rule };
  return { verdict: "allow", dialable: mintDialable(address, port) };
}

/**
 * Why policy refuses the address, or undefined. Denial beats allowance, and a form that carries an IPv4 address in
 * an IPv6 one is judged by the form: whatever it carries is not public.
 */
export function refuseAddress(
  address: IpAddress,
  mayReachPrivate: boolean,
  policy: Policy,
): Reason | undefined {
  const addressClass = classifyAddress(address);
  if (addressClass === "loopback") return "loopback";
  if (policy.denyRanges.some((range) => rangeContains(range, address))) return "address-denied";
  if (addressClass === "public") return undefined;
  if (isNeverOpen(addressClass) || !mayReachPrivate) return "address-not-public";
  return policy.allowRanges.some((range) => rangeContains(range, address)) ? undefined : "address-not-public";
}

function isOurs(address: IpAddress, port: number, surroundings: Surroundings): boolean {
  return surroundings.own.has(address.text) || surroundings.endpoints.has(`${address.text} ${port}`);
}
