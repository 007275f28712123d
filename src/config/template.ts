/** Values such as `Bearer ${env:TOKEN}`: taken apart, and checked as far as that goes without the secret. Pure. */
import { isAbsolute, resolve } from "node:path";
import type { Template, TemplatePart } from "../model/config.ts";
import { valueProblem } from "../secrets/field-value.ts";
import { readText } from "./expect.ts";
import type { Scope } from "./scope.ts";
import type { TreeNode } from "./tree.ts";

const TOKENS = /\$\$|\$\{([^}]*)(\}?)|[^$]+|\$/g;

export type TemplateResult =
  | { readonly ok: true; readonly template: Template }
  | { readonly ok: false; readonly problem: string };

export interface TemplateUse {
  /** Names the value in messages. */
  readonly what: string;
  /** The name under which `secrets/` will know it. */
  readonly key: string;
  /** Whether a value written out in the file deserves a warning. */
  readonly secret: boolean;
  /** A key file: its value may have line breaks. */
  readonly lines?: boolean;
}

/** Reads a value that may hold a secret and files it under `use.key`. No message quotes it. */
export function readTemplate(scope: Scope, node: TreeNode, use: TemplateUse): Template | undefined {
  const text = readText(scope.report, node, use.what);
  if (text === undefined) return undefined;
  const parsed = parseTemplate(text, scope.folder, use.lines);
  if (!parsed.ok) {
    scope.report.error(node.at, `${use.what} ${parsed.problem}`);
    return undefined;
  }
  if (scope.vault === undefined && parsed.template.some(({ kind }) => kind === "vault")) {
    scope.report.error(node.at, `${use.what} is in a vault, and there is no \`vault\` section`);
    return undefined;
  }
  const literal = parsed.template.every((part) => part.kind === "literal");
  if (literal && use.secret) {
    scope.report.warn(
      node.at,
      `${use.what} is a secret written out; use \`\${env:NAME}\` or \`\${file:PATH}\``,
    );
  }
  if (/\$[A-Za-z_]/.test(text.replaceAll("$$", ""))) {
    scope.report.warn(
      node.at,
      `${use.what} has a \`$NAME\` in it, which stays as it is; write \`\${env:NAME}\``,
    );
  }
  scope.templates.set(use.key, parsed.template);
  return parsed.template;
}

/** References (`${env:NAME}`; `${file:PATH}`, relative to `folder`; …) and `$$` for a dollar; everything else stands for itself. */
export function parseTemplate(
  text: string,
  folder: string,
  lines: boolean | undefined = false,
): TemplateResult {
  const parts: TemplatePart[] = [];
  for (const [token, inside, end] of text.matchAll(TOKENS)) {
    if (inside !== undefined && end === "") {
      return { ok: false, problem: `has a \`\${\` without its \`}\`; a literal \`$\` is written \`$$\`` };
    }
    const part = inside === undefined ? literal(token) : parseReference(inside, folder, lines);
    if (typeof part === "string") return { ok: false, problem: part };
    append(parts, part);
  }
  const problem = literalProblem(parts);
  return problem === undefined ? { ok: true, template: parts } : { ok: false, problem };
}

function literal(token: string): TemplatePart {
  return { kind: "literal", text: token === "$$" ? "$" : token };
}

/** Literals that touch are one. */
function append(parts: TemplatePart[], part: TemplatePart): void {
  const last = parts.at(-1);
  if (last?.kind !== "literal" || part.kind !== "literal") parts.push(part);
  else parts[parts.length - 1] = { kind: "literal", text: last.text + part.text };
}

/** A part, or what is wrong. The text inside the braces is not quoted: it may be a secret put there by mistake. */
function parseReference(text: string, folder: string, lines: boolean): TemplatePart | string {
  const more = lines ? ({ lines: true } as const) : {};
  const colon = text.indexOf(":");
  const scheme = colon === -1 ? "" : text.slice(0, colon);
  const name = text.slice(colon + 1);
  switch (scheme) {
    case "env":
      if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return { kind: "env", name, ...more };
      return `has an \`\${env:NAME}\` whose name is not one of letters, digits and underscores`;
    case "file":
      if (name === "" || /\p{Cc}/u.test(name)) return `has a \`\${file:PATH}\` without a usable path`;
      return { kind: "file", path: absolute(name, folder), ...more };
    case "credential":
      if (/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/.test(name)) return { kind: "credential", name, ...more };
      return `has a \`\${credential:NAME}\` whose name is not one of letters, digits, dots, hyphens and underscores`;
    case "exec":
      return parseCommand(name);
    case "vault":
      return parseVault(name, more);
    default:
      return `has a \`\${…}\` that is neither \`\${env:NAME}\` nor \`\${file:PATH}\`; a literal \`$\` is written \`$$\``;
  }
}

/** The first segment is the engine's mount. Nothing is decoded: what is no plain word is refused. */
function parseVault(text: string, more: { readonly lines?: true }): TemplatePart | string {
  const [, mount, path, field] = /^([\w.-]+)\/([\w./-]+)#([\w.-]+)$/.exec(text) ?? [];
  const segments = [mount, ...(path?.split("/") ?? [])];
  if (mount === undefined || path === undefined || field === undefined || segments.some(isDots)) {
    return `has a \`\${vault:MOUNT/PATH#FIELD}\` whose parts are not of letters, digits, dots, hyphens and underscores`;
  }
  return { kind: "vault", mount, path, field, ...more };
}

function isDots(segment: string | undefined): boolean {
  return segment === "" || segment === "." || segment === "..";
}

/** Words and nothing else: there is no shell that would read quotes. */
function parseCommand(text: string): TemplatePart | string {
  const [file, ...args] = text.trim().split(/ +/);
  if (file === undefined || !isAbsolute(file))
    return `has an \`\${exec:PROGRAM WORDS}\` without an absolute path`;
  if (/["'\\`\p{Cc}]/u.test(text)) {
    return `has an \`\${exec:PROGRAM WORDS}\` with a quote, backslash or control character: no shell reads it`;
  }
  return { kind: "exec", command: [file, ...args] };
}

function absolute(path: string, folder: string): string {
  return isAbsolute(path) ? path : resolve(folder, path);
}

/** What keeps the parts that are written out from being (part of) a value. */
function literalProblem(parts: Template): string | undefined {
  const literals = parts.flatMap((part) => (part.kind === "literal" ? [part.text] : []));
  if (literals.length === parts.length) return valueProblem(literals.join(""));
  const [first, last] = [parts[0], parts.at(-1)];
  const blank =
    (first?.kind === "literal" && first.text.startsWith(" ")) ||
    (last?.kind === "literal" && last.text.endsWith(" "));
  return blank ? "starts or ends with a blank" : valueProblem(`.${literals.join("")}.`);
}
