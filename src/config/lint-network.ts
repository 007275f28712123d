/** Entries that can never match or never get through: correct, and surely not meant. Pure. */
import type { RuleSource } from "../model/policy.ts";
import { coveringKeys, patternKey } from "./domain.ts";
import { hopeless, type PlacedDeny } from "./entry.ts";
import { lintPlaceholders } from "./lint-placeholders.ts";
import { checkHandOver } from "./parent.ts";
import { quoteName, type Report } from "./report.ts";
import type { PlacedRule } from "./rule.ts";
import type { Scope } from "./scope.ts";

/** Ports, by what else an entry asks for, each with the line that takes it. */
type Taken = Map<string, Map<number, number>>;

export function lintNetwork(scope: Scope, rules: readonly PlacedRule[], denies: readonly PlacedDeny[]): void {
  lintShadows(scope.report, rules);
  lintDenied(scope.report, rules, denies);
  lintPlaceholders(scope, rules);
  for (const { rule, at } of rules) {
    checkHandOver(scope, rule.pattern, at);
    const why = hopeless(rule.pattern, scope);
    if (why !== undefined) scope.report.warn(at, why);
    lintPrivate(scope, { rule, at });
    if (rule.injections.length > 0 && rule.methods?.every((method) => method === "TRACE")) {
      scope.report.warn(at, "TRACE is refused where something is injected, so this entry can never match");
    }
  }
}

function lintPrivate({ report, allowRanges }: Scope, { rule, at }: Pick<PlacedRule, "rule" | "at">): void {
  if (!rule.private) return;
  if (allowRanges.length === 0) {
    report.warn(at, "`private: true` opens nothing while `upstream.allow_ranges` is empty");
  } else if (rule.pattern.kind === "any") {
    report.warn(at, "`private: true` under `*` lets any name that resolves into `allow_ranges` through");
  }
}

/** Among entries of one pattern the first that fits wins: one that asks for nothing leaves nothing to later ones. */
function lintShadows(report: Report, rules: readonly PlacedRule[]): void {
  const byPattern = new Map<string, Taken>();
  for (const { rule, at } of rules) {
    const key = `${patternKey(rule.pattern)} ${rule.protocol}`;
    const taken = byPattern.get(key) ?? new Map<string, Map<number, number>>();
    byPattern.set(key, taken);
    const line = shadowedBy(taken, rule);
    if (line !== undefined) {
      report.warn(
        at,
        `This entry can never match: the one on line ${line} of the same domain takes all of it`,
      );
    }
    const own = taken.get(conditions(rule)) ?? new Map<number, number>();
    taken.set(conditions(rule), own);
    for (const port of rule.ports) if (!own.has(port)) own.set(port, at.line);
  }
}

/** The line of an earlier entry, where entries that ask for the same or for nothing have all of the rule's ports. */
function shadowedBy(taken: Taken, rule: RuleSource): number | undefined {
  for (const key of new Set(["", conditions(rule)])) {
    const ports = taken.get(key);
    if (ports !== undefined && rule.ports.every((port) => ports.has(port))) {
      return ports.get(rule.ports[0] ?? 0);
    }
  }
  return undefined;
}

function conditions(rule: RuleSource): string {
  if (rule.methods === undefined && rule.paths === undefined) return "";
  return JSON.stringify([rule.methods?.toSorted() ?? null, rule.paths ?? null, rule.encodedSlash]);
}

function lintDenied(report: Report, rules: readonly PlacedRule[], denies: readonly PlacedDeny[]): void {
  const whole = new Map<string, number>();
  for (const { deny, at } of denies)
    if (deny.ports === undefined) whole.set(patternKey(deny.pattern), at.line);
  const all = whole.get("*");
  if (all !== undefined && rules.length > 0) {
    const at = denies.find(({ deny }) => deny.pattern.kind === "any")?.at ?? { line: all, column: 1 };
    report.warn(at, "`*` in `denylist` refuses every name, so no name in `allowlist` gets through");
    return;
  }
  for (const { rule, at } of rules) {
    const key = coveringKeys(rule.pattern).find((candidate) => whole.has(candidate));
    if (key === undefined) continue;
    report.warn(at, `The denylist refuses all of this: ${quoteName(key)} on line ${whole.get(key)}`);
  }
}
