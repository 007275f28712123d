/** Sections whose doors this version does not have: read as far as their form goes, then refused in words. Pure. */
import { parseHostnameIdn } from "../base/hostname.ts";
import { parseDomain } from "./domain.ts";
import { readId } from "./entry.ts";
import { type Fields, isNull, readChoice, readList, readMap, readText, readTexts } from "./expect.ts";
import { CREDENTIAL_KEYS, PARENT_PROXY_KEYS } from "./keys.ts";
import type { Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

const LOCATIONS = ["header", "query", "body"] as const;

export function refuseCredential(report: Report, node: TreeNode, at: Position): void {
  readText(report, node, "`credential`");
  refuse(report, at, "`credential`", "; write the field in `transform`");
}

export function refuseCredentials(scope: Scope, node: TreeNode, at: Position): void {
  const items = readList(scope.report, node, "`credentials`");
  if (items?.length === 0) return;
  for (const item of items ?? []) readCredential(scope, item);
  refuse(scope.report, at, "`credentials`", "; write the field in `transform`");
}

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

type CredentialFields = Fields<(typeof CREDENTIAL_KEYS)[number]>;
const CREDENTIAL_TYPES = ["bearer_token", "oauth2", "environment_variable"] as const;

/** What each type cannot do without. */
const CREDENTIAL_NEEDS = {
  bearer_token: ["token"],
  oauth2: ["client_id", "client_secret", "token_url"],
  environment_variable: ["value", "trusted_domains"],
} as const;

function readCredential(scope: Scope, node: TreeNode): void {
  const { report } = scope;
  const fields: CredentialFields | undefined = readMap(report, node, "A credential", CREDENTIAL_KEYS);
  if (fields === undefined) return;
  need(report, fields, "id", (value) => readId(report, value));
  need(report, fields, "type", (value) => {
    const type = readChoice(report, value, "`type`", CREDENTIAL_TYPES);
    for (const key of type === undefined ? [] : CREDENTIAL_NEEDS[type]) {
      if (!fields.has(key)) report.error(fields.at, `A credential of type \`${type}\` needs a \`${key}\``);
    }
  });
  for (const key of ["token", "client_secret", "refresh_token", "value"] as const) {
    may(fields, key, (value) => readSecret(scope, value, key));
  }
  for (const key of ["client_id", "header_name"] as const) {
    may(fields, key, (value) => readText(report, value, `\`${key}\``));
  }
  for (const key of ["scopes", "header_names"] as const) {
    may(fields, key, (value) => readTexts(report, value, `\`${key}\``));
  }
  may(fields, "token_url", (value) => readUrl(report, value, "`token_url`"));
  may(fields, "trusted_domains", (value) => readDomains(report, value, "`trusted_domains`"));
  may(fields, "injection_location", (value) => readLocations(report, value));
}

function readLocations(report: Report, node: TreeNode): void {
  const nodes = node.kind === "list" ? node.items : [node];
  for (const item of nodes) readChoice(report, item, "`injection_location`", LOCATIONS);
}

function readDomains(report: Report, node: TreeNode, what: string): void {
  for (const { text, at } of readTexts(report, node, what) ?? []) {
    const parsed = parseDomain(text);
    if (!parsed.ok) report.error(at, parsed.problem);
  }
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

function refuse(report: Report, at: Position, what: string, advice = ""): void {
  report.error(at, `${what} is not in this version${advice}`);
}
