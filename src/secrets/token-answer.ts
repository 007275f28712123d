/** What a token endpoint answers: JSON, or a form as some still send it. Pure. No problem quotes it. */
import { valueProblem } from "./field-value.ts";

export interface TokenAnswer {
  readonly status: number;
  readonly text: string;
}

export interface Granted {
  readonly token: string;
  /** Milliseconds. */
  readonly lifetime: number;
  /** In the place of the one that was sent (RFC 6749 section 6). */
  readonly refreshToken: string | undefined;
}

/** Where the endpoint does not say. */
const DEFAULT_LIFETIME = 600_000;
const MAX_LIFETIME = 86_400_000;
const MIN_LIFETIME = 1_000;

/** RFC 6749 section 5. Throws an error with what is wrong, of which nothing but a known error code is the endpoint's. */
export function readGrant({ status, text }: TokenAnswer, field: "access_token" | "id_token"): Granted {
  const fields = fieldsOf(text);
  if (status < 200 || status > 299)
    throw new Error(`The token endpoint answered with ${status}${codeOf(fields)}`);
  const token = checkedToken(fields[field]);
  const refreshToken = fields["refresh_token"];
  return {
    token,
    lifetime: lifetimeOf(fields["expires_in"]),
    refreshToken:
      typeof refreshToken === "string" && valueProblem(refreshToken) === undefined ? refreshToken : undefined,
  };
}

/** A text that can stand in a field; throws where it is none. */
export function checkedToken(token: unknown): string {
  if (typeof token !== "string") throw new Error("The token endpoint answered without a token");
  const problem = valueProblem(token);
  if (problem !== undefined) throw new Error(`The token that came ${problem}`);
  return token;
}

/** Form fields where it is no JSON. */
export function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return Object.fromEntries(new URLSearchParams(text));
  }
}

function lifetimeOf(seconds: unknown): number {
  const value = typeof seconds === "string" && /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) : seconds;
  if (value === undefined || value === null) return DEFAULT_LIFETIME;
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
    throw new Error("The token that came has expired already");
  }
  // A shorter one would be over before it is used, and asked for again for ever.
  return Math.min(Math.max(value * 1_000, MIN_LIFETIME), MAX_LIFETIME);
}

/** RFC 6749 section 5.2: one of a closed set, so nothing else of the answer is printed. */
const CODES: ReadonlySet<unknown> = new Set([
  "invalid_request",
  "invalid_client",
  "invalid_grant",
  "unauthorized_client",
  "unsupported_grant_type",
  "invalid_scope",
]);

function codeOf(fields: Readonly<Record<string, unknown>>): string {
  const { error } = fields;
  return CODES.has(error) ? `, ${String(error)}` : "";
}
