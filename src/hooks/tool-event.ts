/** The two shapes of a tool event and of the answer to it: Google's, and Claude's, which Cortex shares. Pure. */
import type { HookEvent } from "./hooks-file.ts";

/** One tool call that is about to run or has run. `args` is what a handler may rewrite, in Claude's shape alone. */
export interface ToolEvent {
  readonly shape: "google" | "claude";
  readonly event: HookEvent;
  /** As the answer has to name it. */
  readonly eventName: string;
  readonly tool: string;
  /** What handlers get: JSON. */
  readonly payload: string;
}

/** What one handler said, or what all of them together came to. */
export interface ToolDecision {
  /** `none`: nobody objects, and nobody spoke for it. `ask`: a person shall say; Claude's shape alone knows it. */
  readonly verdict: "none" | "allow" | "ask" | "deny";
  readonly reason: string | undefined;
  /** What the call's arguments shall be instead. */
  readonly updatedInput: Json | undefined;
}

export type Answer =
  | { readonly kind: "decision"; readonly decision: ToolDecision }
  /** No decision can be made out of it. */
  | { readonly kind: "unrecognised"; readonly problem: string };

type Json = Readonly<Record<string, unknown>>;

const EVENTS: ReadonlyMap<string, HookEvent> = new Map([
  ["pre_tool_execution", "pre_tool_execution"],
  ["post_tool_execution", "post_tool_execution"],
  ["PreToolUse", "pre_tool_execution"],
  ["PostToolUse", "post_tool_execution"],
  ["PostToolUseFailure", "post_tool_execution"],
] as const);

export const EVENT_NAMES: readonly string[] = [...EVENTS.keys()];

export const NO_OPINION: ToolDecision = { verdict: "none", reason: undefined, updatedInput: undefined };

/** The event, or what is wrong with the call. */
export function readToolEvent(name: string, payload: string): ToolEvent | string {
  const event = EVENTS.get(name);
  if (event === undefined) return `There is no event ${JSON.stringify(name)}`;
  const input = parse(payload);
  if (!isMap(input)) return "The event on stdin is not a JSON object";
  const { hook_event_name, tool_name, tool_call } = input;
  if (typeof hook_event_name === "string") {
    if (EVENTS.get(hook_event_name) !== event)
      return "The event on stdin is another than the one that was named";
    if (typeof tool_name !== "string") return "The event on stdin has no `tool_name`";
    return { shape: "claude", event, eventName: hook_event_name, tool: tool_name, payload };
  }
  if (!isMap(tool_call) || typeof tool_call["name"] !== "string")
    return "The event on stdin has neither a `tool_call` with a `name` nor a `hook_event_name`";
  return { shape: "google", event, eventName: event, tool: tool_call["name"], payload };
}

/** Reads what a handler of a `pre` event printed or answered. */
export function readAnswer(text: string, shape: ToolEvent["shape"]): Answer {
  if (text.trim() === "") return unrecognised("gave no answer");
  const value = parse(text);
  if (!isMap(value)) return unrecognised("gave an answer that is not a JSON object");
  return (shape === "claude" ? readClaude(value) : undefined) ?? readGoogle(value);
}

/** The later answer on top of what the earlier ones came to. A denial has ended the run, so it never stands first. */
export function fold(before: ToolDecision, next: ToolDecision): ToolDecision {
  const stronger = RANK[next.verdict] > RANK[before.verdict] ? next : before;
  return { ...stronger, updatedInput: next.updatedInput ?? before.updatedInput };
}

/** The event as the next handler has to judge it. */
export function withInput(event: ToolEvent, input: Json): ToolEvent {
  const whole = parse(event.payload);
  if (!isMap(whole)) return event;
  return { ...event, payload: JSON.stringify({ ...whole, tool_input: input }) };
}

/** The answer to the agent, one line of JSON. */
export function renderDecision(event: ToolEvent, decision: ToolDecision): string {
  if (event.event === "post_tool_execution") return "{}";
  const { verdict, reason, updatedInput } = decision;
  const why = reason ?? "A hook refused it";
  if (event.shape === "google") {
    return JSON.stringify(verdict === "deny" ? { decision: "deny", reason: why } : { decision: "allow" });
  }
  // An `allow` would skip the question to the user: only a handler that says so may do that.
  if (verdict === "none" && updatedInput === undefined) return "{}";
  return JSON.stringify({
    hookSpecificOutput: {
      hookEventName: event.eventName,
      ...(verdict === "none" ? {} : { permissionDecision: verdict }),
      ...(verdict === "deny" || reason !== undefined ? { permissionDecisionReason: why } : {}),
      ...(updatedInput === undefined || verdict === "deny" ? {} : { updatedInput }),
    },
  });
}

const RANK: Readonly<Record<ToolDecision["verdict"], number>> = { none: 0, allow: 1, ask: 2, deny: 3 };

function readGoogle(value: Json): Answer {
  const { decision, reason } = value;
  const why = typeof reason === "string" && reason !== "" ? reason : undefined;
  if (decision === "deny") return decided("deny", why);
  if (decision === "allow") return decided("allow", why);
  if (decision === undefined) return { kind: "decision", decision: NO_OPINION };
  return unrecognised("gave a `decision` that is neither allow nor deny");
}

/** Undefined where none of its words is used. */
function readClaude(value: Json): Answer | undefined {
  const { decision, reason, stopReason } = value;
  const specific = isMap(value["hookSpecificOutput"]) ? value["hookSpecificOutput"] : {};
  const { permissionDecision, permissionDecisionReason, updatedInput } = specific;
  const why = [permissionDecisionReason, reason, stopReason].find(
    (text): text is string => typeof text === "string" && text !== "",
  );
  const input = isMap(updatedInput) ? updatedInput : undefined;
  if (decision === "block" || value["continue"] === false || permissionDecision === "deny") {
    return decided("deny", why);
  }
  if (permissionDecision === "ask" || permissionDecision === "allow") {
    return decided(permissionDecision, why, input);
  }
  if (permissionDecision !== undefined)
    return unrecognised("gave a `permissionDecision` that is neither allow, ask nor deny");
  if (decision === "approve") return decided("allow", why, input);
  return input === undefined
    ? undefined
    : { kind: "decision", decision: { ...NO_OPINION, updatedInput: input } };
}

function decided(verdict: ToolDecision["verdict"], reason: string | undefined, updatedInput?: Json): Answer {
  // Google's `allow` has no reason to give.
  return { kind: "decision", decision: { verdict, reason, updatedInput } };
}

function unrecognised(problem: string): Answer {
  return { kind: "unrecognised", problem };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    return undefined;
  }
}

function isMap(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
