/** On which ports a sandbox's network is listened to: as few as its rules need, for the sandbox cannot have them itself. Pure. */
import type { NetworkSource, PolicySource } from "../model/policy.ts";

const ALWAYS = [53, 80, 443];

/** Ascending. `sandbox`: undefined for whoever the top-level `network` is for. */
export function portsOf(policy: PolicySource, sandbox: string | undefined): readonly number[] {
  const network =
    sandbox === undefined ? policy.network : policy.sandboxes.find(({ id }) => id === sandbox)?.network;
  return [...new Set([...ALWAYS, ...named(network)])].sort((a, b) => a - b);
}

function named(network: NetworkSource | undefined): readonly number[] {
  return network?.kind === "allowlist" ? network.rules.flatMap(({ ports }) => ports) : [];
}
