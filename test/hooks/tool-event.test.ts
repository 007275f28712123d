import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fold,
  NO_OPINION,
  readAnswer,
  readToolEvent,
  renderDecision,
  type ToolEvent,
  withInput,
} from "../../src/hooks/tool-event.ts";

const GOOGLE = '{"tool_call":{"name":"code_execution","args":{}},"environment_id":"env_1"}';
const CLAUDE =
  '{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}';

test("readToolEvent: both shapes give their tool, and the payload as it came", () => {
  const google = readToolEvent("pre_tool_execution", GOOGLE) as ToolEvent;
  assert.deepEqual([google.shape, google.tool, google.payload], ["google", "code_execution", GOOGLE]);
  const claude = readToolEvent("PreToolUse", CLAUDE) as ToolEvent;
  assert.deepEqual([claude.shape, claude.tool, claude.event], ["claude", "Bash", "pre_tool_execution"]);
  assert.equal((readToolEvent("PostToolUse", GOOGLE) as ToolEvent).event, "post_tool_execution");
});

const WRONG: readonly (readonly [event: string, payload: string, problem: RegExp])[] = [
  ["pre_tool_exec", GOOGLE, /no event "pre_tool_exec"/],
  ["pre_tool_execution", "", /not a JSON object/],
  ["pre_tool_execution", "[]", /not a JSON object/],
  ["pre_tool_execution", "{}", /neither/],
  ["pre_tool_execution", '{"tool_call":{}}', /neither/],
  ["PostToolUse", CLAUDE, /another/],
  ["PreToolUse", '{"hook_event_name":"PreToolUse"}', /tool_name/],
];

for (const [event, payload, problem] of WRONG) {
  test(`readToolEvent: ${event} with ${payload.slice(0, 30)} is a wrong call`, () => {
    const read = readToolEvent(event, payload);
    assert.ok(typeof read === "string");
    assert.match(read, problem);
  });
}

const ANSWERS: readonly (readonly [shape: "google" | "claude", text: string, expected: string])[] = [
  ["google", '{"decision":"deny","reason":"no"}', "deny no"],
  ["google", '{"decision":"deny"}', "deny -"],
  ["google", '{"decision":"allow"}', "allow -"],
  ["google", "{}", "none -"],
  ["google", '{"other":1}', "none -"],
  ["google", '{"decision":"Deny"}', "unrecognised"],
  ["google", "plain text", "unrecognised"],
  ["google", "[]", "unrecognised"],
  ["google", " \n", "unrecognised"],
  ["google", '{"decision":"block"}', "unrecognised"],
  ["google", '{"hookSpecificOutput":{"permissionDecision":"deny"}}', "none -"],
  ["claude", '{"decision":"deny","reason":"no"}', "deny no"],
  ["claude", '{"decision":"block","reason":"no"}', "deny no"],
  ["claude", '{"continue":false,"stopReason":"stop"}', "deny stop"],
  [
    "claude",
    '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"why"}}',
    "deny why",
  ],
  ["claude", '{"hookSpecificOutput":{"permissionDecision":"ask"}}', "ask -"],
  ["claude", '{"hookSpecificOutput":{"permissionDecision":"allow"}}', "allow -"],
  ["claude", '{"hookSpecificOutput":{"permissionDecision":"denied"}}', "unrecognised"],
  ["claude", '{"decision":"approve"}', "allow -"],
  ["claude", '{"systemMessage":"hello"}', "none -"],
  ["claude", '{"hookSpecificOutput":{"updatedInput":{"command":"x"}}}', 'none - {"command":"x"}'],
];

for (const [shape, text, expected] of ANSWERS) {
  test(`readAnswer: to ${shape} ${text.trim()} is ${expected}`, () => {
    const answer = readAnswer(text, shape);
    const { verdict, reason, updatedInput } = answer.kind === "decision" ? answer.decision : NO_OPINION;
    const input = updatedInput === undefined ? "" : ` ${JSON.stringify(updatedInput)}`;
    assert.equal(answer.kind === "decision" ? `${verdict} ${reason ?? "-"}${input}` : answer.kind, expected);
  });
}

test("fold: the severest word stands, and the last input", () => {
  const ask = { ...NO_OPINION, verdict: "ask", updatedInput: { a: 1 } } as const;
  const allow = { ...NO_OPINION, verdict: "allow", updatedInput: { a: 2 } } as const;
  assert.deepEqual(fold(ask, allow), { ...ask, updatedInput: { a: 2 } });
  assert.deepEqual(fold(NO_OPINION, ask), ask);
  assert.deepEqual(fold(ask, NO_OPINION), ask);
});

test("withInput: the next handler judges the rewritten call", () => {
  const event = withInput(readToolEvent("PreToolUse", CLAUDE) as ToolEvent, { command: "pwd" });
  assert.deepEqual(JSON.parse(event.payload).tool_input, { command: "pwd" });
  assert.equal(withInput({ ...event, payload: "x" }, {}).payload, "x");
});

test("renderDecision: in Google's shape", () => {
  const event = readToolEvent("pre_tool_execution", GOOGLE) as ToolEvent;
  assert.equal(renderDecision(event, NO_OPINION), '{"decision":"allow"}');
  assert.equal(
    renderDecision(event, { ...NO_OPINION, verdict: "deny", reason: "no" }),
    '{"decision":"deny","reason":"no"}',
  );
  const post = readToolEvent("post_tool_execution", GOOGLE) as ToolEvent;
  assert.equal(renderDecision(post, NO_OPINION), "{}");
});

test("renderDecision: in Claude's shape nobody is allowed whom no handler allowed in words", () => {
  const event = readToolEvent("PreToolUse", CLAUDE) as ToolEvent;
  assert.equal(renderDecision(event, NO_OPINION), "{}");
  const said = (verdict: "allow" | "ask" | "deny", input?: object): unknown =>
    JSON.parse(renderDecision(event, { verdict, reason: undefined, updatedInput: input as never }));
  assert.deepEqual(said("allow", { a: 1 }), {
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision: "allow", updatedInput: { a: 1 } },
  });
  assert.deepEqual(said("deny", { a: 1 }), {
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: "A hook refused it",
    },
  });
});
