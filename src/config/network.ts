/** A `network` section: the top-level one, or a sandbox's own. Pure. */
import type { NetworkSource, RuleSource } from "../model/policy.ts";
import { type PlacedDeny, readId, readPattern, readPorts } from "./entry.ts";
import { isNull, present, readChoice, readList, readMap } from "./expect.ts";
import { DENY_KEYS, NETWORK_KEYS } from "./keys.ts";
import { lintNetwork } from "./lint-network.ts";
import { quoteName, type Report } from "./report.ts";
import { INTERCEPTS, type PlacedRule, readRule } from "./rule.ts";
import type { Scope } from "./scope.ts";
import type { TreeNode } from "./tree.ts";

/**
 * `key` is the path of the section, such as `network` or `sandboxes[0].network`. Beside `sandboxes` the top-level one
 * may hold a denylist `alone`.
 */
export function readNetwork(
  scope: Scope,
  node: TreeNode | undefined,
  key: string,
  alone = false,
): NetworkSource {
  if (node === undefined || isNull(node)) return { kind: "disabled" };
  if (node.kind === "scalar") {
    if (node.value !== "disabled") {
      scope.report.error(node.at, "`network` must be `disabled` or a map with an `allowlist`");
    }
    return { kind: "disabled" };
  }
  const { report } = scope;
  const fields = readMap(report, node, "`network`", NETWORK_KEYS);
  const interceptNode = fields?.get("intercept");
  const intercept = interceptNode && readChoice(report, interceptNode, "`intercept`", INTERCEPTS);
  const allowNode = present(fields?.get("allowlist"));
  const deniesAlone = alone && present(fields?.get("denylist")) !== undefined;
  if (fields !== undefined && allowNode === undefined && !deniesAlone) {
    const at = fields.keyAt("allowlist");
    report.warn(at, "`network` has no entry in `allowlist`, so everything is refused");
  }
  const rules = readRules(scope, allowNode, { intercept: intercept ?? "auto", key: `${key}.allowlist` });
  const denies = readDenylist(report, present(fields?.get("denylist")));
  checkIds(report, rules, denies);
  lintNetwork(scope, rules, denies);
  return {
    kind: "allowlist",
    rules: rules.map(({ rule }) => rule),
    denylist: denies.map(({ deny }) => deny),
  };
}

function readRules(
  scope: Scope,
  node: TreeNode | undefined,
  { intercept, key }: { readonly intercept: RuleSource["intercept"]; readonly key: string },
): readonly PlacedRule[] {
  const items = node && readList(scope.report, node, "`allowlist`");
  return (items ?? []).flatMap((item, index) => {
    const rule = readRule(scope, item, { intercept, key: `${key}[${index}]` });
    return rule === undefined ? [] : [rule];
  });
}

function readDenylist(report: Report, node: TreeNode | undefined): readonly PlacedDeny[] {
  const items = node && readList(report, node, "`denylist`");
  return (items ?? []).flatMap((item) => {
    const deny = readDeny(report, item);
    return deny === undefined ? [] : [deny];
  });
}

function readDeny(report: Report, node: TreeNode): PlacedDeny | undefined {
  const fields = readMap(report, node, "An entry of `denylist`", DENY_KEYS);
  if (fields === undefined) return undefined;
  const id = readId(report, fields.get("id"));
  const ports = readPorts(report, fields.get("ports"));
  const pattern = readPattern(report, fields);
  if (pattern === undefined) return undefined;
  const deny = { id: id ?? pattern.written, pattern: pattern.source, ports };
  return { deny, id, at: fields.keyAt("domain") };
}

/** An `id` stands for one entry: neither another entry's `id` nor the pattern that stands for one without. */
function checkIds(report: Report, rules: readonly PlacedRule[], denies: readonly PlacedDeny[]): void {
  const entries = [
    ...rules.map(({ rule, id, at }) => ({ name: rule.id, explicit: id !== undefined, at })),
    ...denies.map(({ deny, id, at }) => ({ name: deny.id, explicit: id !== undefined, at })),
  ];
  const explicit = new Map<string, number>();
  for (const { name, at } of entries.filter((entry) => entry.explicit)) {
    const first = explicit.get(name);
    if (first !== undefined)
      report.error(at, `The id ${quoteName(name)} is taken by the entry on line ${first}`);
    else explicit.set(name, at.line);
  }
  for (const { name, at } of entries.filter((entry) => !entry.explicit)) {
    const other = explicit.get(name);
    if (other === undefined) continue;
    report.error(at, `This entry goes by its domain, which the entry on line ${other} has as its \`id\``);
  }
}
