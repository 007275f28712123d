/** What the destination alone decides: a refusal, or the entries that may still allow. Pure. */
import { isLocalhost } from "../base/hostname.ts";
import { type Decision, deny } from "../model/decision.ts";
import type { Destination, IpAddress, Question } from "../model/exchange.ts";
import { refuseAddress } from "./decide-address.ts";
import { findAddress, findEvery, findMostSpecific, type HostTrie } from "./host-trie.ts";
import { type DenyRule, endpointKey, type Network, type Policy, type Rule } from "./policy.ts";
import { refuse } from "./verdict.ts";

export type Candidates =
  | { readonly kind: "decided"; readonly decision: Decision }
  /** The entries of the most specific pattern, in the order they were written in; maybe none. */
  | { readonly kind: "rules"; readonly rules: readonly Rule[] };

/** The denylists, then destinations that no rule opens, then the most specific pattern of the client's network. */
export function findCandidates(question: Question, policy: Policy): Candidates {
  const { sandbox } = question.client;
  if (sandbox !== undefined && !policy.sandboxes.has(sandbox)) {
    // Its sandbox went away in a reload.
    return decided({ verdict: "deny", reason: "identity-unknown", rule: undefined });
  }
  const network = sandbox === undefined ? policy.network : policy.sandboxes.get(sandbox);
  if (network === undefined) return decided(refuse(question, policy, "network-disabled"));

  const { destination } = question;
  const denial = findDenial(policy.denylist, destination) ?? findDenial(network.denylist, destination);
  const opened = openCandidates(question, network, policy);
  if (denial === undefined) return opened;
  // Where evaluate_only lets a denylist pass, it opens no destination that no rule opens.
  const closed = opened.kind === "decided" && opened.decision.verdict === "deny";
  if (closed) return decided(deny("rule-denies", denial.id));
  return decided(refuse(question, policy, "rule-denies", denial));
}

/** What is left once no denylist has spoken. */
function openCandidates(question: Question, network: NonNullable<Network>, policy: Policy): Candidates {
  const { destination } = question;
  if (policy.endpoints.size > 0 && policy.endpoints.has(endpointKey(destination)))
    return decided(refuse(question, policy, "address-not-public"));
  if (destination.kind === "address")
    return addressCandidates(destination.address, network, question, policy);
  if (isLocalhost(destination.host)) return decided(refuse(question, policy, "loopback"));
  return { kind: "rules", rules: findMostSpecific(network.rules, destination.host) };
}

/** A literal needs no lookup, so its class is judged at once; entries of the very literal may open a private one. */
function addressCandidates(
  address: IpAddress,
  network: NonNullable<Network>,
  question: Question,
  policy: Policy,
): Candidates {
  const rules = findAddress(network.rules, address);
  const reason = refuseAddress(address, rules.length > 0, policy);
  return reason === undefined ? { kind: "rules", rules } : decided(refuse(question, policy, reason));
}

/** Every pattern that covers the destination is asked, so a narrow entry with `ports` does not shield a wider one. */
function findDenial(denylist: HostTrie<DenyRule>, destination: Destination): DenyRule | undefined {
  if (denylist.size === 0) return undefined;
  const entries =
    destination.kind === "address"
      ? findAddress(denylist, destination.address)
      : findEvery(denylist, destination.host);
  return entries.findLast(({ ports }) => ports === undefined || ports.includes(destination.port));
}

function decided(decision: Decision): Candidates {
  return { kind: "decided", decision };
}
