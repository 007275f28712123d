/** What goes past the parent proxy: `upstream.proxy.no_proxy`. Pure. */
import type { Destination, IpAddress } from "../model/exchange.ts";
import type { PatternSource } from "../model/pattern.ts";
import type { BypassSource, ParentSource } from "../model/policy.ts";
import { rangeContains } from "./ip.ts";

/** `vetted`: by the parent proxy, to an address that was vetted here. `named`: by it, which gets the name. */
export type Way = "direct" | "vetted" | "named";

/** `hosts`: names that have their answer here, whoever resolves the others. */
export function wayTo(
  { bypass, resolve }: Pick<ParentSource, "bypass" | "resolve">,
  hosts: ReadonlyMap<string, unknown>,
  destination: Destination,
): Way {
  if (bypasses(bypass, destination)) return "direct";
  const named = resolve === "parent" && destination.kind === "name" && !hosts.has(destination.host);
  return named ? "named" : "vetted";
}

/** By what is asked for: a name by names, an address by ranges. */
function bypasses(list: readonly BypassSource[], destination: Destination): boolean {
  return destination.kind === "address"
    ? bypassesAddress(list, destination.address)
    : list.some(
        (entry) => entry.kind !== "range" && covers(entry, { kind: "exact", host: destination.host }),
      );
}

/** `*` is every destination; a range is of addresses, and names say nothing of any. */
export function bypassesAddress(list: readonly BypassSource[], address: IpAddress): boolean {
  return list.some(
    (entry) => entry.kind === "any" || (entry.kind === "range" && rangeContains(entry.range, address)),
  );
}

/** Whether every name of `pattern` goes past, so that the parent proxy never gets one of them. */
export function bypassesPattern(list: readonly BypassSource[], pattern: PatternSource): boolean {
  if (pattern.kind === "address") return bypassesAddress(list, pattern.address);
  return list.some((entry) => entry.kind !== "range" && covers(entry, pattern));
}

type Names = Exclude<PatternSource, { kind: "address" }>;

function covers(entry: Names, pattern: Names): boolean {
  if (entry.kind === "any") return true;
  if (pattern.kind === "any") return false;
  if (pattern.kind === "exact") {
    return entry.kind === "exact" ? entry.host === pattern.host : pattern.host.endsWith(`.${entry.base}`);
  }
  if (entry.kind === "exact") return false;
  return pattern.base === entry.base || pattern.base.endsWith(`.${entry.base}`);
}
