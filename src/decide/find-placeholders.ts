/** Which placeholders a destination is trusted with. Pure. */
import type { PlaceholderSource } from "../model/credential.ts";
import type { Destination } from "../model/exchange.ts";
import { findAddress, findEvery } from "./host-trie.ts";
import type { Policy } from "./policy.ts";

/** Every pattern that covers the destination counts; a literal address is trusted by that very literal alone. */
export function findPlaceholders(
  destination: Destination,
  { placeholders }: Policy,
): readonly PlaceholderSource[] {
  if (placeholders.size === 0) return NONE;
  return destination.kind === "name"
    ? [...new Set(findEvery(placeholders, destination.host))]
    : findAddress(placeholders, destination.address);
}

const NONE: readonly PlaceholderSource[] = [];
