/** Decides whether one exchange may leave. Pure: the same question and policy, the same decision. */
import { methodsInQuery, overrideKind } from "../base/override-fields.ts";
import type { Decision, Reason } from "../model/decision.ts";
import type { FieldLines, Question, Scheme } from "../model/exchange.ts";
import { findCandidates } from "./candidates.ts";
import { asksInside } from "./find-hooks.ts";
import { isAmbiguous, type PathReading, readPath } from "./path.ts";
import type { Policy, Rule } from "./policy.ts";
import { allow, refuse } from "./verdict.ts";

/** Answers that echo the request, and with it what was injected (RFC 9110 section 9.3.8). */
const ECHOING = /^(?:trace|track)$/i;
const ECHOING_OVERRIDE = /\btrac[ek]\b/i;

/**
 * The first entry of the winning pattern whose ports, protocol, methods and paths match decides; none denies.
 *
 * An entry that looks inside a request which the gate cannot see is not skipped: it denies with `needs-inspection`,
 * so that seeing less never allows more.
 */
export function decideExchange(question: Question, policy: Policy): Decision {
  const candidates = findCandidates(question, policy);
  if (candidates.kind === "decided") return candidates.decision;
  const { port } = question.destination;
  const opaque = question.scheme === "tcp";
  // Read once, however many entries ask for it.
  let reading: PathReading | undefined;
  for (const rule of candidates.rules) {
    if (rule.opaque !== opaque || !rule.ports.includes(port)) continue;
    if (rule.paths !== undefined) reading ??= readPath(question.request?.target ?? "*");
    const outcome = judge(rule, question, policy, reading);
    if (outcome === "allow") return allow(question, question.scheme, rule);
    if (outcome !== "no-match") return refuse(question, policy, outcome, rule);
  }
  return refuseUnmatched(question, policy, candidates.rules);
}

/** TRACE is `method-refused` wherever something is injected, also where `methods` leaves it out. */
function refuseUnmatched(question: Question, policy: Policy, rules: readonly Rule[]): Decision {
  const { request, scheme, destination } = question;
  const traces = scheme === "https" && request !== undefined && ECHOING.test(request.method);
  const echoed = ({ ports, injections }: Rule): boolean =>
    traces && injections.length > 0 && ports.includes(destination.port);
  const rule = rules.find(echoed);
  return refuse(question, policy, rule === undefined ? "no-rule-matched" : "method-refused", rule);
}

/** `reading` is there where the rule has paths. */
function judge(
  rule: Rule,
  { request, scheme, destination }: Question,
  policy: Policy,
  reading: PathReading | undefined,
): "allow" | "no-match" | Reason {
  if (request === undefined) {
    const inside = rule.needsRequest || rule.intercept === "always" || asksInside(rule, destination, policy);
    return inside ? "needs-inspection" : "allow";
  }
  if (!rule.needsRequest) return "allow";
  if (rule.methods !== undefined && !rule.methods.includes(request.method)) return "no-match";
  return (
    judgePath(rule, reading) ??
    refuseInjection(rule, request.method, scheme) ??
    judgeQuery(rule, request.target) ??
    judgeFields(rule, request.fields)
  );
}

function judgePath(
  { paths, encodedSlash }: Rule,
  reading: PathReading | undefined,
): "no-match" | Reason | undefined {
  if (paths === undefined || reading === undefined) return undefined;
  if (isAmbiguous(reading, encodedSlash)) return "path-ambiguous";
  return reading.kind !== "none" && paths(reading.path) ? undefined : "no-match";
}

function refuseInjection(
  { injections, certificate }: Rule,
  method: string,
  scheme: Scheme,
): Reason | undefined {
  if (injections.length === 0 && certificate === undefined) return undefined;
  if (scheme !== "https") return "plaintext-secret";
  return injections.length > 0 && ECHOING.test(method) ? "method-refused" : undefined;
}

/** A parameter that some origins obey in place of the request line, and that names a method which the rule does not list. */
function judgeQuery({ methods }: Rule, target: string): Reason | undefined {
  if (methods === undefined || methodsInQuery(target).every((method) => methods.includes(method)))
    return undefined;
  return "method-refused";
}

/** A field that some origins obey in place of the request line that was judged. */
function judgeFields({ limitsRequest }: Rule, fields: FieldLines): "allow" | Reason {
  for (const { key, value } of fields) {
    const kind = overrideKind(key);
    if (kind === "method" && (limitsRequest || ECHOING_OVERRIDE.test(value))) return "method-refused";
    if (kind === "url" && limitsRequest) return "path-ambiguous";
  }
  return "allow";
}
