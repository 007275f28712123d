/** Decides whether a name may be given to a parent proxy that resolves it, where no address can be vetted. Pure. */
import { isLocalhost, isSpecialUse } from "../base/hostname.ts";
import type { HandOverDecision, Permit, Reason } from "../model/decision.ts";
import type { Destination } from "../model/exchange.ts";
import { mintHandedOver } from "./proofs.ts";

/**
 * Only a name that an entry lists as it is (`mayReachPrivate`; the config has no wildcard beside `resolve: parent`):
 * whoever may choose the name would choose its address. Names that mean something else on every network, metadata
 * services among them, are not given away at all.
 */
export function decideHandOver(permit: Permit): HandOverDecision {
  return handOver(permit, (host) => (!permit.mayReachPrivate || isSpecialUse(host) ? NOT_PUBLIC : undefined));
}

/** The same for an endpoint of the operator's own, which is what was meant. */
export function handOverEndpoint(permit: Permit): HandOverDecision {
  return handOver(permit, () => undefined);
}

const NOT_PUBLIC: Reason = "address-not-public";

function handOver(
  { destination, rule }: Permit,
  objection: (host: Extract<Destination, { kind: "name" }>["host"]) => Reason | undefined,
): HandOverDecision {
  // An address is there to be vetted: it is nothing to hand over.
  if (destination.kind === "address") return { verdict: "deny", reason: NOT_PUBLIC, rule };
  const { host, port } = destination;
  const reason = isLocalhost(host) ? "loopback" : objection(host);
  if (reason !== undefined) return { verdict: "deny", reason, rule };
  return { verdict: "allow", handed: mintHandedOver(host, port) };
}
