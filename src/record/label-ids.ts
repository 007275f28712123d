/** The ids that metrics of one policy may be labelled by. Pure. */
import type { NetworkSource, PolicySource } from "../model/policy.ts";

export interface LabelIds {
  readonly rules: readonly string[];
  readonly sandboxes: readonly string[];
}

/** Of its rules, wherever they stand, and of its sandboxes: each one once. */
export function labelIdsOf({ network, denylist, sandboxes }: PolicySource): LabelIds {
  const rules = new Set<string>();
  for (const { id } of denylist) rules.add(id);
  for (const each of [network, ...sandboxes.map((sandbox) => sandbox.network)]) {
    for (const id of idsOfNetwork(each)) rules.add(id);
  }
  return { rules: [...rules], sandboxes: sandboxes.map(({ id }) => id) };
}

function idsOfNetwork(network: NetworkSource): readonly string[] {
  if (network.kind === "disabled") return [];
  return [...network.rules, ...network.denylist].map(({ id }) => id);
}
