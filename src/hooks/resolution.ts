/** The word of a person as it comes over the admin listener. Pure. */
import type { Resolution, Scope } from "./approvals.ts";
import { isObject } from "./jcs.ts";

/** A week. */
const MAX_MINUTES = 10_080;

/** Undefined where it is none: a word that was not understood approves nothing. */
export function readResolution(text: string | undefined): Resolution | undefined {
  const value = parse(text);
  if (!isObject(value) || Object.keys(value).some((key) => !["outcome", "by", "for"].includes(key)))
    return undefined;
  const { outcome, by } = value;
  const scope = readScope(value["for"] ?? "once");
  if ((outcome !== "approve" && outcome !== "reject") || scope === undefined) return undefined;
  if (typeof by !== "string" || !/^[ -~]{1,100}$/.test(by)) return undefined;
  return { approve: outcome === "approve", by, scope };
}

/** `once`, `sandbox`, or minutes: `30m`. */
export function readScope(value: unknown): Scope | undefined {
  if (value === "once" || value === "sandbox") return { kind: value };
  const minutes = typeof value === "string" ? Number(/^([1-9][0-9]{0,4})m$/.exec(value)?.[1]) : Number.NaN;
  return minutes <= MAX_MINUTES ? { kind: "time", ms: minutes * 60_000 } : undefined;
}

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
