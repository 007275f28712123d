/** Sections whose doors this version does not have: read as far as their form goes, then refused in words. Pure. */
import { parseHostnameIdn } from "../base/hostname.ts";
import { type Fields, isNull, readChoice, readMap, readText, readTexts } from "./expect.ts";
import { PARENT_PROXY_KEYS } from "./keys.ts";
import type { Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

/** A URL, or a map with more to say. */
export function refuseParentProxy(scope: Scope, node: TreeNode, at: Position): void {
  const { report } = scope;
  if (isNull(node)) return;
  if (node.kind !== "map") readUrl(report, node, "`proxy`");
  else {
    const fields = readMap(report, node, "`proxy`", PARENT_PROXY_KEYS);
    if (fields !== undefined) {
      need(report, fields, "url", (value) => readUrl(report, value, "`url`"));
      may(fields, "auth", (value) => readSecret(scope, value, "auth"));
      may(fields, "no_proxy", (value) => readTexts(report, value, "`no_proxy`"));
      may(fields, "resolve", (value) => readChoice(report, value, "`resolve`", ["local", "parent"]));
    }
  }
  refuse(report, at, "`proxy`");
}

/** `http` or `https`, a name or an address, and no user or password: those are secrets. */
function readUrl(report: Report, node: TreeNode, what: string): void {
  const text = readText(report, node, what);
  if (text === undefined) return;
  const url = URL.parse(text);
  const scheme = url?.protocol === "http:" || url?.protocol === "https:";
  if (url === null || !scheme || parseHostnameOrAddress(url.hostname) === undefined) {
    report.error(node.at, `${what} must be a URL that begins with \`http://\` or \`https://\``);
  } else if (url.username !== "" || url.password !== "") {
    report.error(node.at, `${what} must not hold a user or password; a secret has its own key`);
  }
}

function parseHostnameOrAddress(host: string): string | undefined {
  return host.startsWith("[")
    ? host
    : (parseHostnameIdn(host) ?? (/^[0-9.]+$/.test(host) ? host : undefined));
}

/** Checked, but not kept: nothing in this version would use it. */
function readSecret(scope: Scope, node: TreeNode, key: string): void {
  readTemplate({ ...scope, templates: new Map() }, node, { what: `\`${key}\``, key, secret: true });
}

function need<K extends string>(
  report: Report,
  fields: Fields<K>,
  key: K,
  read: (node: TreeNode) => unknown,
): void {
  if (fields.has(key)) may(fields, key, read);
  else report.error(fields.at, `\`${key}\` is missing here`);
}

function may<K extends string>(fields: Fields<K>, key: K, read: (node: TreeNode) => unknown): void {
  const node = fields.get(key);
  if (node !== undefined) read(node);
}

function refuse(report: Report, at: Position, what: string): void {
  report.error(at, `${what} is not in this version`);
}
