/** A policy hook's verdict: what one may say (AGENT-HOOKS-0.1 section 5), and how two of them compare. Pure. */
import { canonicalJson, isObject, type Json, type JsonObject } from "./jcs.ts";

export interface Warning {
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

export interface Verdict {
  readonly decision: "allow" | "deny" | "transform";
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly warnings: readonly Warning[];
  /** Of a denial: somebody may lift it. */
  readonly liftable: boolean;
  readonly transform: { readonly path: string; readonly value: Json } | undefined;
  readonly evidence: JsonObject | undefined;
  readonly labels: readonly string[];
}

/** Section 11: what the gate itself may say in a hook's place. */
export type HostReason =
  | "context_invalid"
  | "interceptor_failed"
  | "interceptor_timeout"
  | "verdict_invalid"
  | "transform_invalid"
  | "transform_target_forbidden"
  | "transform_conflict"
  | "composition_disagreement";

const RESERVED = "host_error:";
const MAX_EVIDENCE_BYTES = 10_240;
const MAX_MESSAGE_BYTES = 256;
const MEMBERS = new Set([
  "decision",
  "reason",
  "message",
  "warnings",
  "approval",
  "transform",
  "evidence",
  "result_labels",
]);

/** The verdict in `text`; what is not one is a denial with the reason for that. */
export function readVerdict(text: string): Verdict {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return hostDenial("interceptor_failed");
  }
  return verdictOf(value) ?? hostDenial("verdict_invalid");
}

export function hostDenial(reason: HostReason, liftable = false): Verdict {
  return { ...ALLOW, decision: "deny", reason: `${RESERVED}${reason}`, liftable };
}

export const ALLOW: Verdict = {
  decision: "allow",
  reason: undefined,
  message: undefined,
  warnings: [],
  liftable: false,
  transform: undefined,
  evidence: undefined,
  labels: [],
};

/** Section 5.1: a plain denial stands above one that may be lifted. */
export function severity({ decision, liftable }: Verdict): number {
  if (decision === "deny") return liftable ? 2 : 3;
  return decision === "transform" ? 1 : 0;
}

/** As a record carries it (section 10.3): nothing that a transform would write, and texts cut short. */
export function projectVerdict(verdict: Verdict): JsonObject {
  const { decision, reason, message, warnings, liftable, transform, evidence, labels } = verdict;
  return {
    decision,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: cut(message) }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(projectWarning) }),
    ...(liftable ? { approval: {} } : {}),
    ...(transform === undefined ? {} : { transform: { path: transform.path } }),
    ...(evidence === undefined ? {} : { evidence }),
    ...(labels.length === 0 ? {} : { result_labels: labels }),
  };
}

function verdictOf(value: unknown): Verdict | undefined {
  if (!isObject(value) || Object.keys(value).some((key) => !MEMBERS.has(key))) return undefined;
  const { decision, approval } = value;
  if (decision !== "allow" && decision !== "deny" && decision !== "transform") return undefined;
  if (approval !== undefined && (decision !== "deny" || !isObject(approval))) return undefined;
  const transform = readTransform(value["transform"]);
  if (transform === null || (decision === "transform") !== (transform !== undefined)) return undefined;
  const remarks = readRemarks(value);
  return remarks && { decision, ...remarks, liftable: approval !== undefined, transform };
}

/** What any verdict may carry. */
function readRemarks(value: JsonObject): Omit<Verdict, "decision" | "liftable" | "transform"> | undefined {
  const texts = readTexts(value);
  const warnings = readWarnings(value["warnings"] ?? []);
  const labels = value["result_labels"] ?? [];
  const evidence = readEvidence(value["evidence"]);
  if (texts === undefined || warnings === undefined || evidence === null || !isTexts(labels))
    return undefined;
  return { ...texts, warnings, evidence, labels };
}

function isTexts(value: Json): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** `reason` and `message`; null counts as absent. */
function readTexts(value: JsonObject): Warning | undefined {
  const reason = value["reason"] ?? undefined;
  const message = value["message"] ?? undefined;
  if (reason !== undefined && (typeof reason !== "string" || reason.startsWith(RESERVED))) return undefined;
  if (message !== undefined && typeof message !== "string") return undefined;
  return { reason, message };
}

function readWarnings(value: Json): readonly Warning[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const warnings: Warning[] = [];
  for (const item of value as readonly Json[]) {
    if (!isObject(item) || Object.keys(item).some((key) => key !== "reason" && key !== "message"))
      return undefined;
    const texts = readTexts(item);
    if (texts === undefined) return undefined;
    warnings.push(texts);
  }
  return warnings;
}

/** Null: wrong. */
function readTransform(value: Json | undefined): Verdict["transform"] | null {
  if (value === undefined) return undefined;
  if (!isObject(value) || Object.keys(value).some((key) => key !== "path" && key !== "value")) return null;
  const { path } = value;
  return typeof path === "string" ? { path, value: value["value"] ?? null } : null;
}

/** Null: wrong, or too large to stand in a record. Nothing in it is ever fetched. */
function readEvidence(value: Json | undefined): JsonObject | undefined | null {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return null;
  const { artefact, verification_pointers, ...rest } = value;
  const known = Object.keys(rest).length === 0;
  const pointed =
    verification_pointers === undefined ||
    (isObject(verification_pointers) && isTexts(Object.values(verification_pointers)));
  const named = artefact === undefined || artefact === null || typeof artefact === "string";
  const text = known && pointed && named ? canonicalJson(value) : undefined;
  return text !== undefined && Buffer.byteLength(text) <= MAX_EVIDENCE_BYTES ? value : null;
}

function projectWarning({ reason, message }: Warning): JsonObject {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: cut(message) }),
  };
}

/** At most 256 bytes of UTF-8, on the border of a character. */
function cut(text: string): string {
  if (Buffer.byteLength(text) <= MAX_MESSAGE_BYTES) return text;
  const room = MAX_MESSAGE_BYTES - Buffer.byteLength("…");
  let kept = "";
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > room) break;
    kept += character;
  }
  return `${kept}…`;
}
