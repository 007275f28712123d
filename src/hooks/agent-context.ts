/** What a policy hook is asked: AGENT-HOOKS-0.1 contexts, what makes one whole, and what identifies it. Pure. */
import { createHash } from "node:crypto";
import { canonicalJson, isObject, type Json, type JsonObject } from "./jcs.ts";

export const SPEC = "agent-hooks/0.1";

/** Section 12.3. */
const MAX_CONTEXT_BYTES = 5 * 1_048_576;

/** The members of each point's own, and what of each counts (section 10.2); undefined: all of it. */
const POINTS: ReadonlyMap<string, Readonly<Record<string, readonly string[] | undefined>>> = new Map(
  Object.entries({
    agent_startup: { agent_init: ["tools_registered"] },
    input: { input: ["content", "role"] },
    pre_model_call: { model: ["id"], messages: undefined },
    post_model_call: { model: ["id"], response: ["content", "tool_calls", "finish_reason"] },
    pre_tool_call: { tool_call: ["id", "name", "args"] },
    post_tool_call: { tool_call: ["id", "name", "args"], tool_result: ["value", "is_error"] },
    output: { output: ["content"] },
    agent_shutdown: { summary: ["reason"] },
  }),
);

/** Of the core, in every context. */
const CORE: Readonly<Record<string, readonly string[] | undefined>> = {
  spec: undefined,
  interception_point: undefined,
  timestamp: undefined,
  sequence: undefined,
  agent: ["id", "framework"],
  session: ["id"],
  target: undefined,
};

/**
 * `sha256:` and the hash of what is required of the context, in canonical JSON: optional members never count.
 * Undefined where a required member is missing, or a value is outside the domain of RFC 7493.
 */
export function contextIdentity(context: JsonObject): string | undefined {
  const point = POINTS.get(String(context["interception_point"]));
  if (point === undefined) return undefined;
  const counted: Record<string, Json> = {};
  for (const [key, members] of Object.entries({ ...CORE, ...point })) {
    const value = project(context[key], members);
    if (value === undefined) return undefined;
    counted[key] = value;
  }
  const text = canonicalJson(counted);
  if (text === undefined) return undefined;
  return `sha256:${createHash("sha256").update(text, "utf8").digest("hex")}`;
}

/** Whether it is small enough to be sent around. */
export function fits(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_CONTEXT_BYTES;
}

/** The context with another target, written back to what it is a part of. */
export function withTarget(context: JsonObject, target: Json): JsonObject {
  const call = context["tool_call"];
  if (context["interception_point"] !== "pre_tool_call" || !isObject(call)) return { ...context, target };
  return { ...context, target, tool_call: { ...call, args: target } };
}

function project(value: Json | undefined, members: readonly string[] | undefined): Json | undefined {
  if (members === undefined || value === undefined) return value;
  if (!isObject(value)) return undefined;
  const kept: Record<string, Json> = {};
  for (const member of members) {
    const part = value[member];
    if (part === undefined) return undefined;
    kept[member] = part;
  }
  return kept;
}
