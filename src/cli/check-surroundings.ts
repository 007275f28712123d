/** What `check` finds beside the file: roots and programs that are not there, and secrets that no header can carry. */
import { accessSync, constants } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { parseYaml } from "../config/parse.ts";
import type { Position, TreeNode } from "../config/tree.ts";
import { createUpstreamTls } from "../forward/upstream-tls.ts";
import type { Config, Problem, TemplatePart } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { createSecrets } from "../secrets/secrets.ts";

type Env = Readonly<Record<string, string | undefined>>;
type Found = Pick<Problem, "severity" | "message"> & { readonly at: Position };

const START: Position = { line: 1, column: 1 };
/** What would end a header's line, or cut it, on its way to the upstream. */
const BREAKS = /[\r\n\0]/;
const SAID_TO_BREAK = / holds a (?:line break|NUL)/;

/**
 * In the order of the file. A file of roots or a hook's program that is not here may be there where `serve` runs, so it
 * is a warning; so may a secret that is missing, of which nothing is said. A secret that is here and holds a line break or NUL is an error.
 */
export function checkSurroundings(config: Config, env: Env): readonly Problem[] {
  const parsed = parseYaml(config.text);
  const root = parsed.ok ? parsed.root : undefined;
  const found = [...rootsOf(config, root), ...hooksOf(config, root), ...secretsOf(config, root, env)];
  return found
    .toSorted((a, b) => a.at.line - b.at.line || a.at.column - b.at.column)
    .map(({ severity, message, at }) => ({ severity, file: config.file, ...at, message }));
}

function rootsOf({ upstream }: Config, root: TreeNode | undefined): readonly Found[] {
  if (upstream.caFile === undefined) return [];
  try {
    createUpstreamTls({ caFile: upstream.caFile });
    return [];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const at = child(child(root, "upstream"), "ca_file")?.at ?? START;
    return [{ severity: "warning", at, message: `${error.message}; serve does not start so` }];
  }
}

/** A program that cannot be started refuses all that its hook is asked about. A bare name is looked up by `serve`. */
function hooksOf({ policy }: Config, root: TreeNode | undefined): readonly Found[] {
  const hooks = child(root, "hooks");
  return policy.hooks.flatMap(({ name, handler }, index): readonly Found[] => {
    if (handler.kind !== "command") return [];
    const [file] = handler.command;
    if (!isAbsolute(file) || isExecutable(file)) return [];
    const item = hooks?.kind === "list" ? hooks.items[index] : undefined;
    const at = child(item, "command")?.at ?? START;
    const message = `The program of hook ${name} cannot be started here; without it every request that it is asked about is refused`;
    return [{ severity: "warning", at, message }];
  });
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function secretsOf(config: Config, root: TreeNode | undefined, env: Env): readonly Found[] {
  const folder = dirname(config.file);
  const parts = new Map([...config.templates.values()].flat().map((part) => [JSON.stringify(part), part]));
  return [...parts.values()].flatMap((part): readonly Found[] => {
    const problem = breakIn(part, env);
    if (problem === undefined) return [];
    const at = scalarsOf(root).find(({ text }) => refersTo(text, part, folder))?.at ?? START;
    return [{ severity: "error", at, message: problem }];
  });
}

/** What is wrong, where the value is here and has a line break or NUL that it must not have. */
function breakIn(part: TemplatePart, env: Env): string | undefined {
  if (part.kind !== "env" && part.kind !== "file") return undefined;
  const secrets = createSecrets(new Map([["it", [part]]]), { env, now: () => performance.now() });
  const [missing] = secrets.unavailable();
  if (missing === undefined) return undefined;
  const breaks =
    part.kind === "env"
      ? part.lines !== true && BREAKS.test(env[part.name] ?? "")
      : SAID_TO_BREAK.test(missing.problem);
  return breaks ? missing.problem : undefined;
}

function refersTo(text: string, part: TemplatePart, folder: string): boolean {
  for (const [, kind, name = ""] of text.matchAll(/\$\{(env|file):([^}]*)\}/g)) {
    if (kind === "env" && part.kind === "env" && name === part.name) return true;
    if (kind === "file" && part.kind === "file" && resolve(folder, name) === part.path) return true;
  }
  return false;
}

interface Scalar {
  readonly text: string;
  readonly at: Position;
}

function scalarsOf(node: TreeNode | undefined): readonly Scalar[] {
  if (node === undefined) return [];
  if (node.kind === "list") return node.items.flatMap(scalarsOf);
  if (node.kind === "map") return node.entries.flatMap(({ value }) => scalarsOf(value));
  return typeof node.value === "string" ? [{ text: node.value, at: node.at }] : [];
}

function child(node: TreeNode | undefined, key: string): TreeNode | undefined {
  return node?.kind === "map" ? node.entries.find((entry) => entry.key === key)?.value : undefined;
}
