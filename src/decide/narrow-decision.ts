/** What an operator's hook makes of an allowance: a denial, or the allowance as it was. It can make nothing wider. Pure. */
import type { Allowance, Decision } from "../model/decision.ts";
import type { Question } from "../model/exchange.ts";
import type { Policy } from "./policy.ts";
import { refuse } from "./verdict.ts";

/** A hook or a person said no, or nobody spoke. Where that is only an opinion, nothing is injected, as for every other one. */
export function narrowDecision(
  question: Question,
  { permit }: Allowance,
  policy: Policy,
  reason: "hook-denied" | "approval-timeout" | "rule-denies",
): Decision {
  const { rule, mayReachPrivate } = permit;
  const concerned = rule === undefined ? undefined : { id: rule, mayReachPrivate };
  return refuse(question, policy, reason, concerned);
}

/** A hook that is only tried out said no: the exchange goes on as it was, and the record says what would have been. */
export function remarkDenial(allowance: Allowance): Allowance {
  return { ...allowance, would: "deny" };
}
