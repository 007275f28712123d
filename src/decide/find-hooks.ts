/** Which of the operator's hooks an exchange with this destination is to be put to. Pure. */
import type { Destination } from "../model/exchange.ts";
import { findPlaceholders } from "./find-placeholders.ts";
import { findAddress, findEvery } from "./host-trie.ts";
import type { Policy, Rule } from "./policy.ts";

/**
 * Indices in the policy's `hooks`, in the order of the file. Every pattern that covers the destination counts, and `*`
 * covers addresses too: a hook narrows, so it is asked rather too often than not.
 */
export function findHooks(destination: Destination, { hooks }: Policy): readonly number[] {
  if (hooks.size === 0) return NONE;
  const found =
    destination.kind === "name"
      ? findEvery(hooks, destination.host)
      : [...hooks.any, ...findAddress(hooks, destination.address)];
  return found.length === 0 ? NONE : [...new Set(found)].sort((a, b) => a - b);
}

/** Hooks are asked about each request, unless the operator keeps the connection shut: then once, about the connection. */
export function asksInside(rule: Rule, destination: Destination, policy: Policy): boolean {
  if (rule.opaque || rule.intercept === "never") return false;
  return findHooks(destination, policy).length > 0 || findPlaceholders(destination, policy).length > 0;
}

const NONE: readonly number[] = [];
