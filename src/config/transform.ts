/** The `transform` of an entry: fields that the gate adds. Pure. */
import { overrideKind } from "../base/override-fields.ts";
import type { Injection } from "../model/decision.ts";
import { hasNoLongWord, MIN_SECRET, namesSecret } from "../secrets/secret-field.ts";
import { isToken } from "../wire/field-text.ts";
import { quoteName } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { MapEntry, TreeNode } from "./tree.ts";

/** Why a field may not be injected, by lower-case name. */
const FORBIDDEN: ReadonlyMap<string, string> = new Map([
  ...kind("is where the request goes, which was decided", "host"),
  ...kind("frames the message", "content-length", "transfer-encoding", "trailer", "te"),
  ...kind("belongs to one connection", "connection", "keep-alive", "upgrade", "http2-settings"),
  ...kind("changes how the exchange runs", "expect"),
]);

/** An object or a list of objects, as ordered injections whose templates stand under `prefix`. */
export function readTransform(scope: Scope, node: TreeNode, prefix: string): readonly Injection[] {
  const maps = node.kind === "list" ? node.items : [node];
  const seen = new Map<string, number>();
  const injections: Injection[] = [];
  for (const map of maps) {
    if (map.kind !== "map") {
      scope.report.error(
        map.at,
        "`transform` must be a map of field names and values, or a list of such maps",
      );
      continue;
    }
    for (const entry of map.entries) {
      const injection = readInjection(scope, entry, prefix, seen);
      if (injection !== undefined) injections.push(injection);
    }
  }
  return injections;
}

/** Whether both end in one field at origins that cannot tell an underscore from a hyphen. */
export function samePlace(a: Injection, b: Injection): boolean {
  return a.key.replaceAll("_", "-") === b.key.replaceAll("_", "-");
}

function readInjection(
  scope: Scope,
  entry: MapEntry,
  prefix: string,
  seen: Map<string, number>,
): Injection | undefined {
  const { key: field, keyAt } = entry;
  const key = field.toLowerCase();
  // CGI and its heirs cannot tell an underscore from a hyphen, so the two are one field here.
  const name = key.replaceAll("_", "-");
  const first = seen.get(name);
  const problem =
    fieldProblem(field, name) ??
    (first === undefined ? undefined : `${quoteName(field)} is injected on line ${first} already`);
  if (problem !== undefined) {
    scope.report.error(keyAt, problem);
    return undefined;
  }
  seen.set(name, keyAt.line);
  const secret = `${prefix}.${field}`;
  const use = { what: `The value of ${quoteName(field)}`, key: secret, secret: namesSecret(field) };
  const template = readTemplate(scope, entry.value, use);
  if (template === undefined) return undefined;
  const [only] = template;
  if (template.length === 1 && only?.kind === "literal" && use.secret && hasNoLongWord(only.text)) {
    scope.report.warn(
      entry.value.at,
      `${use.what} is under ${MIN_SECRET} bytes, too short to be masked in answers and logs`,
    );
  }
  return { field, key, secret };
}

function fieldProblem(field: string, name: string): string | undefined {
  if (field.startsWith(":")) return `${quoteName(field)} is a pseudo-header and cannot be injected`;
  if (!isToken(field)) return `${quoteName(field)} is not a field name`;
  const why = whyForbidden(name);
  return why && `${quoteName(field)} cannot be injected: it ${why}`;
}

/** Why no field of this name may be set on the way out, to be read after `it`; `name` in lower case, with hyphens. */
export function whyForbidden(name: string): string | undefined {
  // RFC 9110 section 7.6.1 and what proxies added to it.
  if (name.startsWith("proxy-")) return "belongs to one connection";
  return FORBIDDEN.get(name) ?? (overrideKind(name) && "overrides the method or URL that was decided");
}

function kind(why: string, ...names: readonly string[]): readonly (readonly [string, string])[] {
  return names.map((name) => [name, why] as const);
}
