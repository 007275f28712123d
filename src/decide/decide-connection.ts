/** Decides what to do with a connection before anything inside it is seen. Pure. */
import type { ConnectionDecision, Decision } from "../model/decision.ts";
import type { Question } from "../model/exchange.ts";
import { findCandidates } from "./candidates.ts";
import { asksInside } from "./find-hooks.ts";
import type { Policy, Rule } from "./policy.ts";
import { allow, reach, refuse } from "./verdict.ts";

/**
 * Among the entries of the winning pattern whose ports match, one with `protocol: tcp` settles it. Otherwise the
 * first decides: if it needs nothing from inside, the connection is a tunnel, for then every request in it would be
 * allowed; else each request is decided when it is seen.
 */
export function decideConnection(question: Question, policy: Policy): ConnectionDecision {
  const candidates = findCandidates(question, policy);
  if (candidates.kind === "decided") return carry(candidates.decision, question);

  const { port } = question.destination;
  const rules = candidates.rules.filter((rule) => rule.ports.includes(port));
  const opaque = rules.find((rule) => rule.opaque);
  if (opaque !== undefined) {
    return { verdict: "tunnel", opaque: true, mayInspect: false, allowance: allow(question, "tcp", opaque) };
  }
  const first = rules[0];
  if (first === undefined) return carry(refuse(question, policy, "no-rule-matched"), question);
  return decideByRule(question, policy, first);
}

function decideByRule(question: Question, policy: Policy, rule: Rule): ConnectionDecision {
  // Bytes that are neither TLS nor HTTP: there is no inside to look at.
  if (question.scheme === "tcp") return carry(refuse(question, policy, "needs-inspection", rule), question);
  if (
    question.scheme === "http" ||
    rule.needsRequest ||
    rule.intercept === "always" ||
    asksInside(rule, question.destination, policy)
  ) {
    return { verdict: "inspect", permit: reach(question, rule) };
  }
  return {
    verdict: "tunnel",
    opaque: false,
    mayInspect: rule.intercept !== "never",
    allowance: allow(question, question.scheme, rule),
  };
}

/** A refusal, or what `evaluate_only` made of it: plain HTTP is visible anyway, all else is relayed unseen. */
function carry(decision: Decision, question: Question): ConnectionDecision {
  if (decision.verdict === "deny") return decision;
  if (question.scheme === "http") return { verdict: "inspect", permit: decision.permit };
  return { verdict: "tunnel", opaque: question.scheme === "tcp", mayInspect: true, allowance: decision };
}
