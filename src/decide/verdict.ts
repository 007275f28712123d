/** Says yes on the authority of a rule, or no; `evaluate_only` turns some no into a remark. Pure. */
import type { Allowance, Decision, Permit, Reason } from "../model/decision.ts";
import type { Question, Scheme } from "../model/exchange.ts";
import type { Policy, Rule } from "./policy.ts";
import { mintPermit } from "./proofs.ts";

/** The rule that denied, or whose condition failed. */
export type Concerned = Pick<Rule, "id" | "mayReachPrivate">;

/** What `evaluate_only` lets through: policy's own opinions. All else guards the machine, a name or a secret. */
const OPINIONS: ReadonlySet<Reason> = new Set([
  "no-rule-matched",
  "rule-denies",
  "needs-inspection",
  "method-refused",
  "path-ambiguous",
  "hook-denied",
  "approval-timeout",
]);

/** `scheme` is the question's, or `tcp` where an opaque rule settles it. */
export function allow(question: Question, scheme: Scheme, rule: Rule): Allowance {
  const fields = {
    client: question.client,
    destination: question.destination,
    scheme,
    rule: rule.id,
    injections: rule.injections,
    mayReachPrivate: rule.mayReachPrivate,
  };
  const shown = withCertificate(fields, rule);
  const permit = mintPermit(rule.scrub ? shown : { ...shown, scrub: false });
  const allowance = { verdict: "allow", reason: "rule-allows", would: undefined, permit } as const;
  return rule.approve ? { ...allowance, approve: true } : allowance;
}

/** Good for a connection to the destination and nothing that is sent over it: each request needs its own. */
export function reach(question: Question, rule: Rule): Permit {
  const { client, destination, scheme } = question;
  const { id, mayReachPrivate } = rule;
  const fields = { client, destination, scheme, rule: id, injections: [], mayReachPrivate };
  return mintPermit(withCertificate(fields, rule));
}

function withCertificate<T extends object>(
  fields: T,
  { certificate }: Rule,
): T & { readonly certificate?: string } {
  return certificate === undefined ? fields : { ...fields, certificate };
}

/** A denial; in `evaluate_only` an allowance that injects nothing, where the reason is one of policy's opinions. */
export function refuse(question: Question, policy: Policy, reason: Reason, rule?: Concerned): Decision {
  if (policy.mode === "enforce" || !OPINIONS.has(reason)) return { verdict: "deny", reason, rule: rule?.id };
  const permit = mintPermit({
    client: question.client,
    destination: question.destination,
    scheme: question.scheme,
    rule: rule?.id,
    injections: [],
    mayReachPrivate: rule?.mayReachPrivate ?? false,
  });
  return { verdict: "allow", reason, would: "deny", permit };
}
