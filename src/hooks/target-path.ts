/** The place in a target that a transform names: `$target.headers["X-Trace"]` (AGENT-HOOKS-0.1 section 5.2). Pure. */
import { isObject, type Json } from "./jcs.ts";

export type TargetPath = readonly (string | number)[];

const ROOT = /^\$(?:target|policy_target)(?=[.[]|$)/;
const SEGMENT = /^(?:\.([A-Za-z0-9_-]+)|\[([0-9]{1,15})\]|\["([A-Za-z0-9_-]+)"\])/;

export type PathResult =
  | { readonly ok: true; readonly path: TargetPath }
  | { readonly ok: false; readonly reason: "transform_invalid" | "transform_target_forbidden" };

export function parseTargetPath(text: string): PathResult {
  const root = ROOT.exec(text);
  if (root === null) return { ok: false, reason: "transform_target_forbidden" };
  const path: (string | number)[] = [];
  let rest = text.slice(root[0].length);
  while (rest !== "") {
    const segment = SEGMENT.exec(rest);
    if (segment === null) return { ok: false, reason: "transform_invalid" };
    const [whole, member, index, quoted] = segment;
    path.push(index === undefined ? (member ?? quoted ?? "") : Number(index));
    rest = rest.slice(whole.length);
  }
  return { ok: true, path };
}

/** The target with `value` at the place; undefined where there is no such place. */
export function setAt(target: Json, path: TargetPath, value: Json): Json | undefined {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  if (typeof first === "number") {
    if (!Array.isArray(target) || first >= target.length) return undefined;
    const item = setAt((target as readonly Json[])[first] as Json, rest, value);
    return item === undefined ? undefined : target.with(first, item);
  }
  if (!isObject(target) || !Object.hasOwn(target, first)) return undefined;
  const member = setAt(target[first] as Json, rest, value);
  return member === undefined ? undefined : { ...target, [first]: member };
}
