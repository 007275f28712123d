/** Which entries came near a request that no entry matched, and what they lacked: sentences for a person. Pure. */
import type { Question, RequestHead } from "../model/exchange.ts";
import { findCandidates } from "./candidates.ts";
import { findEvery } from "./host-trie.ts";
import type { Policy, Rule } from "./policy.ts";

/** A question about a request that is seen. */
type Seen = Question & { readonly request: RequestHead };

/** At most these many entries are named. */
const NAMED = 8;

/** For a question whose answer is `no-rule-matched`; none where something before the allowlist decided. */
export function nearMisses(question: Seen, policy: Policy): readonly string[] {
  const { client, destination } = question;
  const network = client.sandbox === undefined ? policy.network : policy.sandboxes.get(client.sandbox);
  const candidates = findCandidates(question, policy);
  if (network === undefined || candidates.kind === "decided") return [];
  const { rules } = candidates;
  if (rules.length === 0) return ["No entry of the allowlist covers the host"];
  const every = destination.kind === "address" ? rules : findEvery(network.rules, destination.host);
  return [
    ...rules.slice(0, NAMED).map((rule) => `Entry ${rule.id} covers the host, ${lack(rule, question)}`),
    ...(every.length > rules.length
      ? ["Wider entries are not asked: those of the most specific domain decide alone"]
      : []),
  ];
}

/** In the order in which an entry is compared; what is left is the path. */
function lack({ opaque, ports, methods }: Rule, { scheme, destination, request }: Seen): string {
  if (opaque !== (scheme === "tcp")) {
    return opaque ? "for raw bytes alone (protocol: tcp)" : "not for raw bytes (protocol: tcp)";
  }
  if (!ports.includes(destination.port)) return `not this port (it has ${ports.join(", ")})`;
  if (methods?.includes(request.method) === false) {
    return `not this method (it has ${methods.join(", ")})`;
  }
  return "not this path";
}
