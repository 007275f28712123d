/** The `hooks` and `hook_options` sections: who is asked before an exchange leaves. Pure. */
import type { PatternSource } from "../model/pattern.ts";
import type { HookOptions, HookPoint, HookSource, NetworkSource } from "../model/policy.ts";
import { isToken } from "../wire/field-text.ts";
import { parseDomain } from "./domain.ts";
import { readId } from "./entry.ts";
import { type Fields, readChoice, readList, readMap, readTexts } from "./expect.ts";
import { isOverheard, readHttpEndpoint } from "./http-endpoint.ts";
import { HOOK_KEYS, HOOK_OPTION_KEYS } from "./keys.ts";
import { quoteName, type Report } from "./report.ts";
import { whyForbidden } from "./transform.ts";
import type { Position, TreeNode } from "./tree.ts";
import { readDuration } from "./units.ts";

type HookFields = Fields<(typeof HOOK_KEYS)[number]>;

/** From 100 ms to ten minutes. */
const TIMEOUT = { min: 100, max: 600_000 };
const DEFAULT_TIMEOUT = 5_000;
const POINTS: readonly HookPoint[] = ["pre_tool_call", "post_tool_call"];
const PROFILES = [
  "sequential/first_deny",
  "sequential/run_all",
  "parallel/strictest",
  "parallel/unanimous",
] as const;
const OUTCOMES = ["deny", "approval"] as const;

export function readHooks(report: Report, node: TreeNode | undefined): readonly HookSource[] {
  const items = node && readList(report, node, "`hooks`");
  const names = new Map<string, Position>();
  return (items ?? []).flatMap((item) => {
    const hook = readHook(report, item);
    if (hook === undefined) return [];
    const first = names.get(hook.name);
    if (first !== undefined) {
      report.error(item.at, `The name ${quoteName(hook.name)} is taken by the hook on line ${first.line}`);
    }
    names.set(hook.name, item.at);
    return [hook];
  });
}

/** Absent keys have the defaults of AGENT-HOOKS-0.1 section 7.2, each of them the one that denies. */
export function readHookOptions(report: Report, node: TreeNode | undefined): HookOptions {
  const fields = node && readMap(report, node, "`hook_options`", HOOK_OPTION_KEYS);
  function choose<T extends string>(key: (typeof HOOK_OPTION_KEYS)[number], choices: readonly T[]): T {
    const value = fields?.get(key);
    return (value && readChoice(report, value, `\`${key}\``, choices)) ?? (choices[0] as T);
  }
  return {
    mode: choose("mode", ["enforce", "evaluate_only"]),
    profile: choose("composition", PROFILES),
    onApproval: choose("on_approval", ["stop", "resume"]),
    onTransformConflict: choose("on_transform_conflict", OUTCOMES),
    onDisagreement: choose("on_disagreement", OUTCOMES),
  };
}

/** A field that an entry injects is the gate's alone. `at` is where the hooks stand. */
export function checkInjected(
  report: Report,
  at: Position,
  hooks: readonly HookSource[],
  networks: readonly NetworkSource[],
): void {
  const rules = networks.flatMap((network) => (network.kind === "disabled" ? [] : network.rules));
  const injected = new Set(rules.flatMap(({ injections }) => injections.map(({ key }) => plain(key))));
  for (const { name, maySet } of hooks) {
    const field = maySet.find((candidate) => injected.has(plain(candidate)));
    if (field === undefined) continue;
    report.error(at, `The hook ${quoteName(name)} cannot set ${quoteName(field)}: an entry injects it`);
  }
}

function readHook(report: Report, node: TreeNode): HookSource | undefined {
  const fields = readMap(report, node, "A hook", HOOK_KEYS);
  if (fields === undefined) return undefined;
  const name = need(report, fields, "name", (value) => readId(report, value, "`name`"));
  const domains = need(report, fields, "domains", (value) => readDomains(report, value));
  const handler = readHandler(report, fields);
  const timeoutNode = fields.get("timeout");
  const timeout = timeoutNode && readDuration(report, timeoutNode, "`timeout`", TIMEOUT);
  const maySet = readMaySet(report, fields.get("may_set"));
  const points = readPoints(report, fields.get("points"));
  if (name === undefined || domains === undefined || handler === undefined) return undefined;
  return { name, domains, timeout: timeout ?? DEFAULT_TIMEOUT, maySet, points, handler };
}

function readHandler(report: Report, fields: HookFields): HookSource["handler"] | undefined {
  const type = need(report, fields, "type", (value) =>
    readChoice(report, value, "`type`", ["command", "http"]),
  );
  if (type === undefined) return undefined;
  const [key, other] = type === "http" ? (["url", "command"] as const) : (["command", "url"] as const);
  if (fields.has(other)) report.error(fields.keyAt(other), `A hook of type \`${type}\` has no \`${other}\``);
  const node = fields.get(key);
  if (node === undefined) {
    report.error(fields.at, `A hook of type \`${type}\` needs a \`${key}\``);
    return undefined;
  }
  if (type === "command") return readCommand(report, node);
  const endpoint = readHttpEndpoint(report, node);
  if (endpoint !== undefined && isOverheard(endpoint)) {
    report.warn(node.at, "This hook is asked in clear text, so whoever is in between may answer for it");
  }
  return endpoint;
}

function readCommand(report: Report, node: TreeNode): HookSource["handler"] | undefined {
  const words = readTexts(report, node, "`command`")?.map(({ text }) => text);
  const [file, ...args] = words ?? [];
  if (file !== undefined && words?.every((word) => !word.includes("\0")) === true) {
    return { kind: "command", command: [file, ...args] };
  }
  if (words !== undefined) {
    report.error(node.at, "`command` must be a list of words: the program, then its arguments");
  }
  return undefined;
}

function readDomains(report: Report, node: TreeNode): readonly PatternSource[] | undefined {
  const texts = readTexts(report, node, "`domains`");
  if (texts?.length === 0) report.error(node.at, "`domains` is empty, so the hook would never be asked");
  return texts?.flatMap(({ text, at }) => {
    const parsed = parseDomain(text);
    if (parsed.ok) return [parsed.pattern];
    report.error(at, parsed.problem);
    return [];
  });
}

function readMaySet(report: Report, node: TreeNode | undefined): readonly string[] {
  const texts = (node && readTexts(report, node, "`may_set`")) ?? [];
  const seen = new Set<string>();
  for (const { text, at } of texts) {
    const problem = fieldProblem(text, seen);
    if (problem !== undefined) report.error(at, `A hook cannot set ${quoteName(text)}: it ${problem}`);
  }
  return texts.map(({ text }) => text);
}

function fieldProblem(field: string, seen: Set<string>): string | undefined {
  const name = plain(field);
  if (!isToken(field)) return "is not a field name";
  // The path of a transform can name nothing else (AGENT-HOOKS-0.1 section 5.2).
  if (!/^[A-Za-z0-9_-]+$/.test(field)) return "has other characters than letters, digits, `-` and `_`";
  if (seen.has(name)) return "is listed twice";
  seen.add(name);
  if (name === "cookie") return "is the client's own word of who it is";
  return whyForbidden(name);
}

/** CGI and its heirs cannot tell an underscore from a hyphen. */
function plain(field: string): string {
  return field.toLowerCase().replaceAll("_", "-");
}

function readPoints(report: Report, node: TreeNode | undefined): readonly HookPoint[] {
  const items = node && readList(report, node, "`points`");
  if (node === undefined || items === undefined) return POINTS;
  if (items.length === 0) report.error(node.at, "`points` is empty, so the hook would never be asked");
  return items.flatMap((item) => readChoice(report, item, "`points`", POINTS) ?? []);
}

function need<T>(
  report: Report,
  fields: HookFields,
  key: (typeof HOOK_KEYS)[number],
  read: (node: TreeNode) => T | undefined,
): T | undefined {
  const node = fields.get(key);
  if (node !== undefined) return read(node);
  report.error(fields.at, `\`${key}\` is missing here`);
  return undefined;
}
