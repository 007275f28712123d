/** Reads `hooks.json`: which handlers belong to which event, and what is wrong with the file. */
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from "node:fs";
import { isLocalhost, parseHostname } from "../base/hostname.ts";
import { parseIpAddress } from "../base/ip.ts";
import { compileWhole } from "../base/whole-pattern.ts";
import { valueProblem } from "../secrets/field-value.ts";
import { isToken } from "../wire/field-text.ts";

export const HOOK_EVENTS = ["pre_tool_execution", "post_tool_execution"] as const;
export type HookEvent = (typeof HOOK_EVENTS)[number];

/** Handlers of one event that share a matcher, in the order of the file. */
export interface HookEntry {
  readonly event: HookEvent;
  matches(tool: string): boolean;
  readonly handlers: readonly Handler[];
}

export interface HandlerBounds {
  /** Where it stands: `security-gate.pre_tool_execution[0].hooks[0]`. */
  readonly where: string;
  readonly timeoutMs: number;
  readonly onFailure: "allow" | "block";
}

export interface CommandHandler extends HandlerBounds {
  readonly type: "command";
  readonly command: string;
}

export interface HttpHandler extends HandlerBounds {
  readonly type: "http";
  readonly url: URL;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Fails whenever it is asked. */
export interface BrokenHandler extends HandlerBounds {
  readonly type: "broken";
  readonly problem: string;
}

export type Handler = CommandHandler | HttpHandler | BrokenHandler;

/** `where` is empty where the whole file is meant. */
export interface HooksProblem {
  readonly where: string;
  readonly problem: string;
}

export interface HooksFile {
  readonly entries: readonly HookEntry[];
  readonly problems: readonly HooksProblem[];
}

type Json = Readonly<Record<string, unknown>>;
type Complain = (where: string, problem: string) => void;

const PLACES = [".agents/hooks.json", "/.agents/hooks.json"];
const MAX_FILE_BYTES = 1_048_576;
const DEFAULT_TIMEOUT_S = 30;
const MAX_TIMEOUT_S = 86_400;
const GROUP_KEYS: readonly string[] = ["enabled", ...HOOK_EVENTS];
const ENTRY_KEYS = ["matcher", "hooks"];
const HANDLER_KEYS = { command: ["command"], http: ["url", "headers"] } as const;
/** The client sets these itself. */
const FRAMING = /^(?:host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|proxy-.*)$/i;

/** The first of the two places that has the file; undefined where neither does. */
export function findHooksFile(): string | undefined {
  return PLACES.find((place) => existsSync(place));
}

/** Never throws. A file that cannot be read has no entries and one problem. */
export function readHooksFile(path: string): HooksFile {
  const read = readText(path);
  return read.ok ? parseHooks(read.text) : { entries: [], problems: [{ where: "", problem: read.problem }] };
}

export function parseHooks(text: string): HooksFile {
  const entries: HookEntry[] = [];
  const problems: HooksProblem[] = [];
  const complain: Complain = (where, problem) => void problems.push({ where, problem });
  let top: unknown;
  try {
    top = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    complain("", "is not JSON");
  }
  if (isMap(top)) for (const [name, group] of Object.entries(top)) readGroup(name, group, entries, complain);
  else if (problems.length === 0) complain("", "must be a map of groups");
  return { entries, problems };
}

function readGroup(name: string, group: unknown, entries: HookEntry[], complain: Complain): void {
  if (!isMap(group)) {
    complain(name, "must be a map");
    return;
  }
  sayUnknown(group, GROUP_KEYS, name, complain);
  const { enabled = true } = group;
  if (typeof enabled !== "boolean") complain(`${name}.enabled`, "must be true or false, and counts as true");
  for (const event of HOOK_EVENTS) {
    const read = readList(`${name}.${event}`, group[event] ?? [], event, complain);
    if (enabled !== false) entries.push(...read);
  }
}

function readList(where: string, list: unknown, event: HookEvent, complain: Complain): readonly HookEntry[] {
  if (!Array.isArray(list)) {
    complain(where, "must be a list");
    return [];
  }
  return list.flatMap((entry, index) => readEntry(`${where}[${index}]`, entry, event, complain) ?? []);
}

function readEntry(
  where: string,
  entry: unknown,
  event: HookEvent,
  complain: Complain,
): HookEntry | undefined {
  if (!isMap(entry)) {
    complain(where, "must be a map with `matcher` and `hooks`");
    return undefined;
  }
  sayUnknown(entry, ENTRY_KEYS, where, complain);
  const { hooks } = entry;
  if (!Array.isArray(hooks)) complain(`${where}.hooks`, "must be a list");
  return {
    event,
    matches: readMatcher(entry["matcher"], `${where}.matcher`, complain),
    handlers: Array.isArray(hooks)
      ? hooks.map((hook, index) => readHandler(`${where}.hooks[${index}]`, hook, complain))
      : [],
  };
}

/** RE2 over the whole name. `*` is no pattern of RE2, and stands for every tool as "" does. */
function readMatcher(matcher: unknown, where: string, complain: Complain): (tool: string) => boolean {
  // A gate that names no tool is meant for all of them rather than for none.
  if (matcher === undefined || matcher === "" || matcher === "*") return () => true;
  const compiled =
    typeof matcher === "string" ? compileWhole(matcher) : { ok: false as const, problem: "It must be text" };
  if (compiled.ok) return compiled.matches;
  complain(where, `matches no tool: ${compiled.problem}`);
  return () => false;
}

function readHandler(where: string, hook: unknown, complain: Complain): Handler {
  const bounds = { where, timeoutMs: DEFAULT_TIMEOUT_S * 1_000, onFailure: "allow" as const };
  if (!isMap(hook)) return broken(bounds, "must be a map with a `type`", complain);
  const all = {
    where,
    timeoutMs: readTimeout(hook["timeout"], where, complain),
    onFailure: readOnFailure(hook["onFailure"], where, complain),
  };
  const { type } = hook;
  if (type !== "command" && type !== "http") {
    return broken(all, "must have the `type` command or http", complain);
  }
  sayUnknown(hook, ["type", "timeout", "onFailure", ...HANDLER_KEYS[type]], where, complain);
  if (type === "http") return readHttp(all, hook, complain);
  const { command } = hook;
  return typeof command === "string" && command.trim() !== ""
    ? { ...all, type, command }
    : broken(all, "must have a `command`, as text", complain);
}

function readHttp(bounds: HandlerBounds, hook: Json, complain: Complain): Handler {
  const url = typeof hook["url"] === "string" ? URL.parse(hook["url"]) : null;
  const problem = urlProblem(url);
  if (url === null || problem !== undefined) {
    return broken(bounds, problem ?? "must have a `url`, as text", complain);
  }
  const headers = readHeaders(hook["headers"] ?? {});
  if (typeof headers === "string") return broken(bounds, headers, complain);
  return { ...bounds, type: "http", url, headers };
}

/** The fields, or what is wrong with one of them. */
function readHeaders(headers: unknown): HttpHandler["headers"] | string {
  if (!isMap(headers)) return "must have `headers` that are a map";
  const fields: (readonly [string, string])[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (!isToken(name) || FRAMING.test(name)) return `cannot send the header ${JSON.stringify(name)}`;
    if (typeof value !== "string") return `cannot send ${JSON.stringify(name)}, whose value is not text`;
    const wrong = valueProblem(value);
    if (wrong !== undefined) return `cannot send ${JSON.stringify(name)}, whose value ${wrong}`;
    fields.push([name, value]);
  }
  return fields;
}

function urlProblem(url: URL | null): string | undefined {
  if (url?.protocol !== "https:") return "must have a `url` that begins with https://";
  if (url.username !== "" || url.password !== "") return "must have a `url` without a name and a password";
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  const address = parseIpAddress(bare);
  const name = address === undefined ? parseHostname(bare) : undefined;
  const local =
    (name !== undefined && isLocalhost(name)) ||
    (address !== undefined && /^(?:127\.|0\.|::1?$)/.test(address.text));
  return local ? "must have a `url` of another machine: loopback is refused" : undefined;
}

function readTimeout(timeout: unknown, where: string, complain: Complain): number {
  if (timeout === undefined) return DEFAULT_TIMEOUT_S * 1_000;
  if (typeof timeout === "number" && timeout > 0 && timeout <= MAX_TIMEOUT_S) return timeout * 1_000;
  complain(
    `${where}.timeout`,
    `must be a number of seconds up to ${MAX_TIMEOUT_S}, and counts as ${DEFAULT_TIMEOUT_S}`,
  );
  return DEFAULT_TIMEOUT_S * 1_000;
}

/** Whoever wrote the key meant to block; a spelling error must not undo that. */
function readOnFailure(value: unknown, where: string, complain: Complain): "allow" | "block" {
  if (value === undefined || value === "allow") return "allow";
  if (value !== "block") complain(`${where}.onFailure`, "must be allow or block, and counts as block");
  return "block";
}

function broken(bounds: HandlerBounds, problem: string, complain: Complain): BrokenHandler {
  complain(bounds.where, problem);
  return { ...bounds, type: "broken", problem };
}

function sayUnknown(map: Json, known: readonly string[], where: string, complain: Complain): void {
  for (const key of Object.keys(map)) {
    if (!known.includes(key)) complain(where, `has the unknown key ${JSON.stringify(key.slice(0, 60))}`);
  }
}

function isMap(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Text = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

/** A regular file: a pipe would block us, and a device has no end. */
function readText(path: string): Text {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { ok: false, problem: "is not a regular file" };
    if (stat.size > MAX_FILE_BYTES) return { ok: false, problem: "is larger than 1 MiB" };
    return { ok: true, text: readFileSync(descriptor, "utf8") };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return { ok: false, problem: `cannot be read (${code})` };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
