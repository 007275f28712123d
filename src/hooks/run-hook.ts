/** The hook runner: asks the handlers of `hooks.json` about one tool call, in their order. Fails open, and says so. */
import { runBounded } from "./bounded-process.ts";
import { type CommandHandler, type Handler, type HttpHandler, readHooksFile } from "./hooks-file.ts";
import { postJson, type Way } from "./http-post.ts";
import {
  fold,
  NO_OPINION,
  readAnswer,
  readToolEvent,
  renderDecision,
  type ToolDecision,
  type ToolEvent,
  withInput,
} from "./tool-event.ts";

export interface HookRun {
  /** `pre_tool_execution`, `post_tool_execution`, `PreToolUse`, `PostToolUse` or `PostToolUseFailure`. */
  readonly event: string;
  /** The event as the agent's runtime gave it: JSON. */
  readonly payload: string;
  /** Undefined: there is none, so nothing objects. */
  readonly hooksFile: string | undefined;
  /** What command handlers inherit, and where HTTP handlers learn of a proxy. */
  readonly way: Way;
  /** Told of each failure, one line at a time, in printable ASCII. */
  report(line: string): void;
  readonly signal?: AbortSignal | undefined;
}

export type HookRunEnd =
  | { readonly ok: true; readonly denied: boolean; readonly answer: string }
  /** The call itself is wrong: no handler was asked. */
  | { readonly ok: false; readonly problem: string };

/** Of a handler's answer. */
const MAX_ANSWER_BYTES = 1_048_576;
const MAX_LINE = 600;

/** Never rejects. `answer` is what the agent's runtime shall read: one line of JSON in the shape of the event. */
export async function runHook(run: HookRun): Promise<HookRunEnd> {
  const event = readToolEvent(run.event, run.payload);
  if (typeof event === "string") return { ok: false, problem: event };
  const handlers = handlersFor(event, run);
  const decision = await (event.event === "pre_tool_execution"
    ? askAll(handlers, event, run)
    : tellAll(handlers, event, run));
  return { ok: true, denied: decision.verdict === "deny", answer: renderDecision(event, decision) };
}

function handlersFor({ event, tool }: ToolEvent, run: HookRun): readonly Handler[] {
  if (run.hooksFile === undefined) return [];
  const { entries, problems } = readHooksFile(run.hooksFile);
  for (const { where, problem } of problems) say(run, where === "" ? run.hooksFile : where, problem);
  return entries.filter((entry) => entry.event === event && entry.matches(tool)).flatMap((e) => e.handlers);
}

/** The first denial ends it. */
async function askAll(handlers: readonly Handler[], event: ToolEvent, run: HookRun): Promise<ToolDecision> {
  let so: ToolDecision = NO_OPINION;
  let current = event;
  for (const handler of handlers) {
    const decision = await ask(handler, current, run);
    so = fold(so, decision);
    if (so.verdict === "deny") return so;
    if (decision.updatedInput !== undefined) current = withInput(current, decision.updatedInput);
  }
  return so;
}

/** The tool has run: what handlers say of it is not looked at. */
async function tellAll(handlers: readonly Handler[], event: ToolEvent, run: HookRun): Promise<ToolDecision> {
  for (const handler of handlers) {
    const reply = await replyOf(handler, event, run);
    if (!reply.ok) say(run, handler.where, reply.problem, reply.stderr);
  }
  return NO_OPINION;
}

async function ask(handler: Handler, event: ToolEvent, run: HookRun): Promise<ToolDecision> {
  const reply = await replyOf(handler, event, run);
  const answer = reply.ok ? readAnswer(reply.text, event.shape) : undefined;
  if (answer?.kind === "decision") return answer.decision;
  const blocks = handler.onFailure === "block";
  const problem = (reply.ok ? answer?.problem : reply.problem) ?? "gave no answer";
  // A command that has nothing to say prints nothing: that is no failure, unless one was to block.
  if (blocks || !(reply.ok && reply.text.trim() === "")) {
    const what = `${problem}; the call is ${blocks ? "denied" : "allowed all the same"}`;
    say(run, handler.where, what, reply.ok ? "" : reply.stderr);
  }
  if (!blocks) return NO_OPINION;
  return { ...NO_OPINION, verdict: "deny", reason: `The hook ${handler.where} ${problem}` };
}

type Reply =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string; readonly stderr: string };

function replyOf(handler: Handler, event: ToolEvent, run: HookRun): Promise<Reply> {
  if (handler.type === "command") return replyOfCommand(handler, event, run);
  if (handler.type === "http") return replyOfHttp(handler, event, run);
  return Promise.resolve({ ok: false, problem: handler.problem, stderr: "" });
}

async function replyOfCommand(
  { command, timeoutMs }: CommandHandler,
  { payload }: ToolEvent,
  { way, signal }: HookRun,
): Promise<Reply> {
  const end = await runBounded({
    command: ["/bin/sh", "-c", command],
    env: way.env,
    input: payload,
    timeoutMs,
    maxOutputBytes: MAX_ANSWER_BYTES,
    signal,
  });
  if (end.kind === "failed") return { ok: false, problem: end.problem, stderr: end.stderr };
  if (end.code !== 0) return { ok: false, problem: `ended with exit status ${end.code}`, stderr: end.stderr };
  return { ok: true, text: end.stdout };
}

async function replyOfHttp(
  { url, headers, timeoutMs }: HttpHandler,
  { payload }: ToolEvent,
  { way, signal }: HookRun,
): Promise<Reply> {
  const order = { url, headers, body: payload, timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal };
  const end = await postJson(order, way);
  return end.kind === "answered"
    ? { ok: true, text: end.text }
    : { ok: false, problem: end.problem, stderr: "" };
}

/** One line, whatever the handler wrote. */
function say(run: HookRun, where: string, problem: string, stderr = ""): void {
  const tail = stderr.trim() === "" ? "" : `; it said: ${stderr.trim()}`;
  const line = `${where} ${problem}${tail}`.replace(/[^\x20-\x7e]+/g, " ");
  run.report(line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}...` : line);
}
