/** Decides what a lookup of a name is worth: whether any connection to it could be allowed. Pure. */
import type { Denial, Reason } from "../model/decision.ts";
import type { Client, Hostname } from "../model/exchange.ts";
import { findCandidates } from "./candidates.ts";
import type { Policy } from "./policy.ts";
import { refuse } from "./verdict.ts";

export type NameDecision = Denial | NameAllowance;

/** No permit: nothing leaves for a lookup. */
export interface NameAllowance {
  readonly verdict: "allow";
  readonly reason: Reason;
  /** The first entry of the winning pattern. */
  readonly rule: string | undefined;
  readonly would: "deny" | undefined;
}

/** No port is asked for, so entries that deny some ports alone deny nothing here. */
const NO_PORT = 0;

export function decideName(host: Hostname, client: Client, policy: Policy): NameDecision {
  const question = {
    client,
    destination: { kind: "name", host, port: NO_PORT },
    scheme: "tcp",
    visibility: "destination",
    request: undefined,
  } as const;
  const candidates = findCandidates(question, policy);
  const [rule] = candidates.kind === "rules" ? candidates.rules : [];
  if (rule !== undefined) {
    return { verdict: "allow", reason: "rule-allows", rule: rule.id, would: undefined };
  }
  const decision =
    candidates.kind === "decided" ? candidates.decision : refuse(question, policy, "no-rule-matched");
  if (decision.verdict === "deny") return decision;
  return {
    verdict: "allow",
    reason: decision.reason,
    rule: decision.permit.rule,
    would: decision.would,
  };
}
