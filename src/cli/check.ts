/** `check`: reads a config as `serve` would, says everything that is wrong with it, and changes nothing. */
import { coveringKeys, patternKey } from "../config/domain.ts";
import { loadConfig } from "../config/load.ts";
import type { LoadResult, Problem } from "../model/config.ts";
import type { PolicySource, RuleSource } from "../model/policy.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, UsageError } from "./command.ts";

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
  const problems = problemsOf(result);
  if (values["json"] === true) {
    process.stdout.write(`${JSON.stringify({ ok: result.ok, problems })}\n`);
  } else {
    for (const problem of problems) process.stdout.write(`${renderProblem(problem)}\n`);
    if (result.ok) {
      const unseen = relayedUnseen(result.config.policy);
      if (unseen.length > 0) process.stdout.write(`${result.config.file}: note: ${noteOf(unseen)}\n`);
      process.stdout.write(`${result.config.file}: ok\n`);
    }
  }
  return result.ok ? EXIT.fine : EXIT.usage;
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

/** `file:line:col: message`, as editors and terminals understand it; a warning says that it is one. */
export function renderProblem({ severity, file, line, column, message }: Problem): string {
  const prefix = severity === "warning" ? "warning: " : "";
  return `${file}:${line}:${column}: ${prefix}${message}`;
}
