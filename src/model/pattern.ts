/** What a `domain` of the config covers. Types only. */
import type { IpAddress } from "./exchange.ts";

/** `wildcard`: any depth below `base`, not `base` itself. Names are canonical (`base/hostname.ts`). */
export type PatternSource =
  | { readonly kind: "exact"; readonly host: string }
  | { readonly kind: "wildcard"; readonly base: string }
  | { readonly kind: "any" }
  | { readonly kind: "address"; readonly address: IpAddress };
