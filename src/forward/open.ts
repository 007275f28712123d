/** Opens one bare connection: resolve, vet, then dial, or have the parent proxy dial for us. */
import { bypassesAddress } from "../base/bypass.ts";
import { parseIpAddress } from "../base/ip.ts";
import type { Denial, Dialable } from "../model/decision.ts";
import { Failure } from "../model/failure.ts";
import type { Acquired, Refused, Route } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";
import { dial, type Opened } from "./dial.ts";
import type { Parent } from "./parent.ts";
import type { Resolver } from "./resolve.ts";

export interface OpenParts {
  readonly limits: Limits;
  readonly resolver: Resolver;
  readonly parent?: Parent | undefined;
}

/** RFC 8305 section 5. */
const STAGGER_MS = 250;
const NOTHING = Buffer.alloc(0);

/** Rejects with a Failure of the upstream's. */
export async function openWay(
  route: Route,
  parts: OpenParts,
  signal: AbortSignal,
): Promise<Acquired<Opened>> {
  const { parent } = parts;
  const way = parent?.wayTo(route.permit.destination) ?? "direct";
  if (parent === undefined || way === "direct") {
    const vetted = await vet(route, parts, signal);
    return "kind" in vetted ? vetted : direct(vetted.dialables, parts, signal);
  }
  // First, so that its own address is known for one of ours before others are judged.
  const located = await parent.locate(signal);
  if (way === "named") {
    const decision = route.handOver?.() ?? NOT_HANDED;
    if (decision.verdict === "deny") return { kind: "refused", denial: decision };
    return parent.open(located, [decision.handed], route, signal);
  }
  const vetted = await vet(route, parts, signal);
  if ("kind" in vetted) return vetted;
  const near = vetted.dialables.filter(({ address }) => bypassesAddress(parent.bypass, address));
  if (near.length > 0) return direct(near, parts, signal);
  return parent.open(located, vetted.dialables, route, signal);
}

const NOT_HANDED: Denial = { verdict: "deny", reason: "address-not-public", rule: undefined };

async function vet(
  route: Route,
  { resolver }: OpenParts,
  signal: AbortSignal,
): Promise<Refused | { readonly dialables: readonly Dialable[] }> {
  const { destination } = route.permit;
  const addresses =
    destination.kind === "address" ? [destination.address] : await resolver.resolve(destination.host, signal);
  const dialables: Dialable[] = [];
  let refusal: Denial | undefined;
  for (const address of addresses) {
    const decision = route.guard(address);
    if (decision.verdict === "allow") dialables.push(decision.dialable);
    else refusal ??= decision;
  }
  if (dialables.length > 0) return { dialables };
  if (refusal !== undefined) return { kind: "refused", denial: refusal };
  throw new Failure("E_RESOLVE", "upstream", "The name has no address");
}

async function direct(
  vetted: readonly Dialable[],
  { limits }: OpenParts,
  signal: AbortSignal,
): Promise<Acquired<Opened>> {
  const timeoutMs = limits.connect_timeout;
  const socket = await dial(vetted, { timeoutMs, signal, stagger: STAGGER_MS });
  const peer = parseIpAddress(socket.remoteAddress ?? "");
  return { kind: "ready", upstream: { socket, early: NOTHING, peer } };
}
