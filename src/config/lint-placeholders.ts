/** Entries that a placeholder credential trusts and that keep its requests out of sight: it is never replaced there. Pure. */
import type { PatternSource } from "../model/pattern.ts";
import { coveringKeys, patternKey } from "./domain.ts";
import { quoteName, type Report } from "./report.ts";
import type { PlacedRule } from "./rule.ts";
import type { Scope } from "./scope.ts";

const SHUT = {
  never: "`intercept: never` keeps TLS shut",
  tcp: "`protocol: tcp` passes unseen",
} as const;

/** Each entry is told once for each credential, however many of its domains meet it. */
export function lintPlaceholders({ report, credentials }: Scope, rules: readonly PlacedRule[]): void {
  const shut = [...Map.groupBy(rules, ({ rule }) => patternKey(rule.pattern)).values()].flatMap(shutOf);
  if (shut.length === 0) return;
  const keys = new Set(rules.map(({ rule }) => patternKey(rule.pattern)));
  for (const { id, placeholder } of credentials.values()) {
    if (placeholder !== undefined) lintOne(report, shut, { id, met: meets(placeholder.domains, keys) });
  }
}

interface Shut {
  readonly placed: PlacedRule;
  readonly why: keyof typeof SHUT;
}

/** Of one pattern. Raw bytes of one port beside requests on another are no mistake. */
function shutOf(same: readonly PlacedRule[]): readonly Shut[] {
  const seen = same.some(({ rule }) => rule.protocol === "http" && rule.intercept !== "never");
  return same.flatMap((placed): readonly Shut[] => {
    const { protocol, intercept } = placed.rule;
    if (protocol === "tcp") return seen ? [] : [{ placed, why: "tcp" }];
    return intercept === "never" ? [{ placed, why: "never" }] : [];
  });
}

/** Whether entries of a pattern decide about names that are trusted. */
function meets(
  trusted: readonly PatternSource[],
  keys: ReadonlySet<string>,
): (pattern: PatternSource) => boolean {
  const whole = new Set(trusted.map(patternKey));
  // Where the very name has no entry, the next wider pattern decides for it.
  const deciding = new Set(trusted.map((pattern) => widening(pattern).find((key) => keys.has(key))));
  return (pattern) =>
    deciding.has(patternKey(pattern)) || coveringKeys(pattern).some((key) => whole.has(key));
}

function widening(pattern: PatternSource): readonly string[] {
  return pattern.kind === "address" ? coveringKeys(pattern) : [...coveringKeys(pattern), "*"];
}

function lintOne(
  report: Report,
  shut: readonly Shut[],
  { id, met }: { readonly id: string; readonly met: (pattern: PatternSource) => boolean },
): void {
  for (const { placed, why } of shut) {
    if (!met(placed.rule.pattern)) continue;
    report.warn(
      placed.at,
      `${SHUT[why]}, so the placeholder of the credential ${quoteName(id)} is not replaced here`,
    );
  }
}
