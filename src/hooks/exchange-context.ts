/** One exchange as a tool call: what a policy hook is told of it, and what it may change. No secret is in it. Pure. */
import type { FieldLines, Question } from "../model/exchange.ts";
import type { ExchangeRecord } from "../model/record.ts";
import { valueProblem } from "../secrets/field-value.ts";
import { SPEC } from "./agent-context.ts";
import { isObject, type Json, type JsonObject } from "./jcs.ts";
import type { TargetPath } from "./target-path.ts";
import type { HostReason } from "./verdict.ts";

/** Of one emission: what the desk alone knows. */
export interface Envelope {
  readonly session: string;
  readonly sequence: number;
  /** The same before an exchange and after it. */
  readonly call: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
}

/** A field as the request shall carry it; undefined: not at all. */
export interface FieldSetting {
  readonly field: string;
  /** Lower case. */
  readonly key: string;
  readonly value: string | undefined;
}

const TOOL = "http_request";

/** `fields` are those that some hook may set, as the operator spells them. */
export function argsOf(question: Question, fields: readonly string[]): JsonObject {
  const { client, destination, scheme, request } = question;
  const [path = null] = request === undefined ? [] : request.target.split("?", 1);
  return {
    method: request?.method ?? "CONNECT",
    scheme,
    host: destination.kind === "name" ? destination.host : destination.address.text,
    port: destination.port,
    path,
    sandbox: client.sandbox ?? null,
    ...(fields.length === 0 ? {} : { headers: headersOf(request?.fields ?? [], fields) }),
  };
}

export function contextBefore(args: JsonObject, envelope: Envelope): JsonObject {
  return { ...common(args, envelope, "pre_tool_call"), target: args };
}

/** What came of it, by its record. */
export function contextAfter(args: JsonObject, envelope: Envelope, record: ExchangeRecord): JsonObject {
  const value = {
    verdict: record.verdict,
    reason: record.reason ?? null,
    status: record.status ?? null,
    bytes_out: record.bytesOut,
    bytes_in: record.bytesIn,
    duration_ms: Math.round(record.durationMs),
    failure: record.failure ?? null,
  };
  const failed = record.verdict === "deny" || record.failure !== undefined;
  return {
    ...common(args, envelope, "post_tool_call"),
    tool_result: { value, is_error: failed },
    target: value,
  };
}

/** Of the target there is one part that a hook may write: the value of a field that it was given. */
export function forbidsWriting(
  maySet: readonly string[],
  [root, field, ...deeper]: TargetPath,
  value: Json,
): HostReason | undefined {
  const known = typeof field === "string" && maySet.includes(field);
  if (root !== "headers" || !known || deeper.length > 0) return "transform_target_forbidden";
  if (value === null) return undefined;
  return typeof value === "string" && valueProblem(value) === undefined ? undefined : "transform_invalid";
}

/** What the hooks made of the fields, as far as it is another than it was. */
export function settingsOf(before: JsonObject, after: Json): readonly FieldSetting[] {
  const old = before["headers"];
  const now = isObject(after) ? after["headers"] : undefined;
  if (!isObject(old) || !isObject(now)) return [];
  return Object.entries(now).flatMap(([field, value]) => {
    if (value === old[field]) return [];
    return [{ field, key: field.toLowerCase(), value: typeof value === "string" ? value : undefined }];
  });
}

function common(args: JsonObject, { session, sequence, call, time }: Envelope, point: string): JsonObject {
  const { sandbox } = args;
  return {
    spec: SPEC,
    interception_point: point,
    timestamp: new Date(time).toISOString(),
    sequence,
    agent: { id: typeof sandbox === "string" ? sandbox : "default", framework: "sallyport" },
    session: { id: session },
    tool_call: { id: call, name: TOOL, args },
  };
}

/** Each field with the client's own value; several of one name are joined, as RFC 9110 section 5.3 joins them. */
function headersOf(lines: FieldLines, fields: readonly string[]): JsonObject {
  return Object.fromEntries(
    fields.map((field) => {
      const key = field.toLowerCase();
      const values = lines.filter((line) => line.key === key).map(({ value }) => value);
      return [field, values.length === 0 ? null : values.join(", ")];
    }),
  );
}
