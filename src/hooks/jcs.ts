/** Canonical JSON (RFC 8785) over I-JSON (RFC 7493): a value has one text, or none. Pure. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

/** Deeper than this no context is canonicalised: AGENT-HOOKS-0.1 section 12.3. */
export const MAX_DEPTH = 128;

const MAX_INTEGER = 2 ** 53 - 1;
/** From here on a number is written with an exponent, which no other number shares. */
const EXPONENT = 1e21;

/** Undefined: the value is outside the domain, and nothing may be made to fit. */
export function canonicalJson(value: Json): string | undefined {
  return canonical(value, 0);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function canonical(value: Json, depth: number): string | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (typeof value === "number") return canonicalNumber(value);
  if (typeof value === "string") return canonicalString(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map((item) => canonical(item, depth + 1));
    return items.includes(undefined) ? undefined : `[${items.join(",")}]`;
  }
  const object = value as JsonObject;
  // The default order is by UTF-16 code units, which is RFC 8785's.
  const members = Object.keys(object)
    .sort()
    .map((key) => canonicalMember(key, object[key] as Json, depth + 1));
  return members.includes(undefined) ? undefined : `{${members.join(",")}}`;
}

function canonicalMember(key: string, value: Json, depth: number): string | undefined {
  const name = canonicalString(key);
  const text = canonical(value, depth);
  return name === undefined || text === undefined ? undefined : `${name}:${text}`;
}

/** ECMAScript's own form of a number is RFC 8785's. Beyond 2^53 a whole number may have been rounded on its way here. */
function canonicalNumber(value: number): string | undefined {
  if (!Number.isFinite(value)) return undefined;
  const size = Math.abs(value);
  if (Number.isInteger(value) && size > MAX_INTEGER && size < EXPONENT) return undefined;
  return JSON.stringify(value);
}

function canonicalString(text: string): string | undefined {
  return text.isWellFormed() ? JSON.stringify(text) : undefined;
}
