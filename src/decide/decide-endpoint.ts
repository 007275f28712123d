/** Decides whether the gate itself may dial an endpoint that the operator's config names. Pure. */
import type { AddressDecision, Permit } from "../model/decision.ts";
import type { Destination, IpAddress, Scheme } from "../model/exchange.ts";
import { classifyAddress } from "./address-class.ts";
import { refuseAddress } from "./decide-address.ts";
import type { Policy } from "./policy.ts";
import { mintDialable, mintPermit } from "./proofs.ts";

/** The gate's own errand: it belongs to no sandbox, no rule allowed it, and nothing is injected. */
export function permitEndpoint(destination: Destination, scheme: Scheme): Permit {
  const client = { sandbox: undefined, address: "" };
  return mintPermit({ client, destination, scheme, rule: undefined, injections: [], mayReachPrivate: true });
}

/**
 * A name is vetted as a sandbox's is: whoever answers for it must not lead the gate to its own machine. An address
 * that the operator wrote out is what was meant, a hook beside the gate on loopback above all; the addresses that no
 * one means (metadata, link-local, multicast) stay shut.
 */
export function decideEndpointAddress(permit: Permit, address: IpAddress, policy: Policy): AddressDecision {
  const { destination, mayReachPrivate } = permit;
  const reason =
    destination.kind === "address" && MEANT.has(classifyAddress(address))
      ? undefined
      : refuseAddress(address, mayReachPrivate, policy);
  if (reason !== undefined) return { verdict: "deny", reason, rule: undefined };
  return { verdict: "allow", dialable: mintDialable(address, destination.port) };
}

/**
 * The parent proxy stands where the operator put it, in a private network as a rule: no range has to be opened for
 * it, which would open as much to sandboxes. Loopback has to be written as the address that it is.
 */
export function decideParentAddress(destination: Destination, address: IpAddress): AddressDecision {
  const addressClass = classifyAddress(address);
  const named = destination.kind === "name";
  if (MEANT.has(addressClass) && !(named && addressClass === "loopback")) {
    return { verdict: "allow", dialable: mintDialable(address, destination.port) };
  }
  const reason = addressClass === "loopback" ? "loopback" : "address-not-public";
  return { verdict: "deny", reason, rule: undefined };
}

const MEANT: ReadonlySet<string> = new Set(["public", "loopback", "private", "shared"]);
