/** `check`: reads a config as `serve` would, says everything that is wrong with it, and changes nothing. */
import { coveringKeys, patternKey } from "../config/domain.ts";
import { loadConfig } from "../config/load.ts";
import type { Config, LoadResult, Problem } from "../model/config.ts";
import type { PolicySource, RuleSource } from "../model/policy.ts";
import { checkSurroundings } from "./check-surroundings.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, UsageError } from "./command.ts";
import { environment } from "./environment.ts";

/** Entries that the note on tunnels names. */
const NAMED = 10;

export const check: Command = {
  name: "check",
  summary: "validate a config file and print each problem as file:line:col: message",
  usage: "[FILE] [--json]",
  optionsHelp: [["--json", "print one JSON object: ok, problems"]],
  example: "sallyport check /etc/sallyport/sallyport.yaml",
  options: { json: { type: "boolean" } },
  run: runCheck,
};

async function runCheck(values: OptionValues, positionals: readonly string[]): Promise<number> {
  if (positionals.length > 1) throw new UsageError("Give one file");
  const result = loadConfig(positionals[0] ?? DEFAULT_CONFIG, 1);
  const around = result.ok ? checkSurroundings(result.config, environment()) : [];
  const problems = [...problemsOf(result), ...around];
  const ok = problems.every(({ severity }) => severity === "warning");
  const text =
    values["json"] === true
      ? JSON.stringify({ ok, problems })
      : [...problems.map(renderProblem), ...(result.ok && ok ? praise(result.config) : [])].join("\n");
  process.stdout.write(`${text}\n`);
  return ok ? EXIT.fine : EXIT.usage;
}

function praise({ file, policy }: Config): readonly string[] {
  const unseen = relayedUnseen(policy);
  return [...(unseen.length > 0 ? [`${file}: note: ${noteOf(unseen)}`] : []), `${file}: ok`];
}

/** Ids of the entries whose TLS passes unopened, for some of their hosts at least. */
function relayedUnseen(policy: PolicySource): readonly string[] {
  const networks = [policy.network, ...policy.sandboxes.map(({ network }) => network)];
  const rules = networks.flatMap((network) => (network.kind === "allowlist" ? network.rules : []));
  const opened = openedFor(policy);
  const unseen = rules.filter(
    (rule) =>
      rule.protocol === "http" &&
      !needsInside(rule) &&
      (rule.intercept === "never" || !["*", ...coveringKeys(rule.pattern)].some((key) => opened.has(key))),
  );
  return [...new Set(unseen.map(({ id }) => id))];
}

function needsInside(rule: RuleSource): boolean {
  const { intercept, approve, methods, paths, injections, certificate } = rule;
  return (
    intercept === "always" ||
    (approve && intercept !== "never") ||
    methods !== undefined ||
    paths !== undefined ||
    injections.length > 0 ||
    certificate !== undefined
  );
}

/** Keys of the patterns that hooks are asked about, or that a placeholder is replaced for: both need the inside. */
function openedFor({ hooks, placeholders }: PolicySource): ReadonlySet<string> {
  const patterns = [
    ...hooks.flatMap(({ domains }) => domains),
    ...placeholders.flatMap(({ domains }) => domains),
  ];
  return new Set(patterns.map(patternKey));
}

function noteOf(ids: readonly string[]): string {
  const named = ids.slice(0, NAMED).join(", ");
  const more = ids.length > NAMED ? ` and ${ids.length - NAMED} more` : "";
  return `TLS to these passes unopened, so the Host inside is unseen: ${named}${more}`;
}

export function problemsOf(result: LoadResult): readonly Problem[] {
  return result.ok ? result.warnings : result.problems;
}

/** What keeps a config from coming into force: warnings before it in the file do not. */
export function firstError(problems: readonly Problem[]): Problem | undefined {
  return problems.find(({ severity }) => severity === "error");
}

/** `file:line:col: message`, as editors and terminals understand it; a warning says that it is one. */
export function renderProblem({ severity, file, line, column, message }: Problem): string {
  const prefix = severity === "warning" ? "warning: " : "";
  return `${file}:${line}:${column}: ${prefix}${message}`;
}
