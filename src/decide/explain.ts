/** Says what would happen to a request, by asking the very functions that enforce. Pure. */
import type { Decision, Permit, Reason } from "../model/decision.ts";
import type { Question, RequestHead } from "../model/exchange.ts";
import { decideConnection } from "./decide-connection.ts";
import { decideExchange } from "./decide-exchange.ts";
import { findHooks } from "./find-hooks.ts";
import { findPlaceholders } from "./find-placeholders.ts";
import { nearMisses } from "./near-misses.ts";
import type { Policy } from "./policy.ts";

export interface Explanation {
  readonly verdict: "allow" | "deny";
  readonly reason: Reason;
  readonly rule: string | undefined;
  /** `tunnel`: relayed unseen. `inspect`: TLS is ended here. `none`: refused before, or there is no TLS. */
  readonly interception: "none" | "tunnel" | "inspect";
  /** Names of the injected fields, as the operator wrote them. */
  readonly injected: readonly string[];
  /** Sentences for a person: what this answer leaves open. */
  readonly notes: readonly string[];
}

/** A question about one request, or about raw bytes (`scheme: tcp`, whose request is never looked at). */
export type Query = Pick<Question, "client" | "destination" | "scheme"> & { readonly request: RequestHead };

export function explain(query: Query, policy: Policy): Explanation {
  const inside = insideOf(query);
  if (query.scheme === "http") return describe(decideExchange(inside, policy), "none", query, policy);

  const outside: Question = { ...query, visibility: "destination", request: undefined };
  const connection = decideConnection(outside, policy);
  if (connection.verdict === "deny") return describe(connection, "none", query, policy);
  if (connection.verdict === "tunnel") {
    const { opaque, allowance } = connection;
    return describe(allowance, opaque ? "opaque" : "tunnel", query, policy);
  }
  return describe(decideExchange(inside, policy), "inspect", query, policy);
}

function insideOf(query: Query): Question & Query {
  return { ...query, visibility: "request" };
}

function describe(
  decision: Decision,
  how: Explanation["interception"] | "opaque",
  query: Query,
  policy: Policy,
): Explanation {
  const { destination } = query;
  const interception = how === "opaque" ? "tunnel" : how;
  const near = decision.reason === "no-rule-matched" ? nearMisses(insideOf(query), policy) : [];
  if (decision.verdict === "deny") {
    const { verdict, reason, rule } = decision;
    return { verdict, reason, rule, interception, injected: [], notes: near };
  }
  const { verdict, reason, would, permit } = decision;
  const hooks = findHooks(destination, policy).length;
  const notes = [
    ...(hooks > 0 ? [`Hooks are asked before it leaves, and may refuse it: ${hooks}`] : []),
    ...(would === undefined && interception === "inspect" ? placeholderNotes(destination, policy) : []),
    ...(would === "deny" ? ["Allowed only because of mode evaluate_only; enforce would deny it"] : []),
    ...near,
    ...(permit.injections.length > 0 ? [scrubNote(permit)] : []),
    ...(how === "opaque" || how === "tunnel" ? UNSEEN[how] : []),
    ...(interception === "tunnel" ? unreplacedNotes(destination, policy) : []),
    ...(destination.kind === "name"
      ? ["The address that the name resolves to is decided when it is dialled"]
      : []),
  ];
  return {
    verdict,
    reason,
    rule: permit.rule,
    interception,
    injected: permit.injections.map(({ field }) => field),
    notes,
  };
}

const UNSEEN = {
  tunnel: ["Relayed unseen: the Host and the requests inside are not checked"],
  opaque: [
    "Raw bytes, relayed unseen: nothing in them is checked, replaced or put in",
    "Where they begin a TLS handshake, its server name must be this one",
  ],
} as const;

function scrubNote({ scrub }: Permit): string {
  return scrub === false
    ? "The answer is not searched for what is injected: `scrub` is off"
    : "The answer is searched for the secrets, and what is found is masked";
}

function placeholderNotes(destination: Query["destination"], policy: Policy): readonly string[] {
  return findPlaceholders(destination, policy).map(
    ({ placeholder, locations }) => `${placeholder} is replaced here, in: ${locations.join(", ")}`,
  );
}

function unreplacedNotes(destination: Query["destination"], policy: Policy): readonly string[] {
  return findPlaceholders(destination, policy).map(
    ({ placeholder }) => `${placeholder} is not replaced here`,
  );
}
