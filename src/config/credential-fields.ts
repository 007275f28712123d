/** Single fields of a credential. Pure. */
import type { PlaceholderLocation } from "../model/credential.ts";
import type { PatternSource } from "../model/pattern.ts";
import { isToken } from "../wire/field-text.ts";
import { parseDomain } from "./domain.ts";
import { type Fields, readChoice, readText, readTexts } from "./expect.ts";
import type { CREDENTIAL_KEYS } from "./keys.ts";
import { quoteName } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import { whyForbidden } from "./transform.ts";
import type { TreeNode } from "./tree.ts";

export type CredentialKey = (typeof CREDENTIAL_KEYS)[number];
export type CredentialFields = Fields<CredentialKey>;

/** One credential while it is read. */
export interface Reader {
  readonly scope: Scope;
  readonly id: string;
  readonly fields: CredentialFields;
}

const LOCATIONS = ["header", "query", "body"] as const;

/** Files a template under `credentials.ID.KEY` and gives that key; undefined where the field is absent or wrong. */
export function secretAt(reader: Reader, key: CredentialKey, lines?: "lines"): string | undefined {
  const { scope, id, fields } = reader;
  const node = fields.get(key);
  if (node === undefined) return undefined;
  const name = `credentials.${id}.${key}`;
  const use = { what: `\`${key}\``, key: name, secret: SECRET.has(key), lines: lines !== undefined };
  return readTemplate(scope, node, use) && name;
}

const SECRET: ReadonlySet<CredentialKey> = new Set([
  "token",
  "password",
  "client_secret",
  "refresh_token",
  "value",
  "secret_access_key",
  "session_token",
  "private_key",
  "key",
]);

export function textAt({ scope, fields }: Reader, key: CredentialKey): string | undefined {
  const node = fields.get(key);
  return node && readText(scope.report, node, `\`${key}\``);
}

export function textsAt({ scope, fields }: Reader, key: CredentialKey): readonly string[] | undefined {
  const node = fields.get(key);
  return node && readTexts(scope.report, node, `\`${key}\``)?.map(({ text }) => text);
}

/** A field that may be injected. */
export function headerAt({ scope, fields }: Reader): string | undefined {
  const node = fields.get("header_name");
  const name = node && readText(scope.report, node, "`header_name`");
  if (node === undefined || name === undefined) return undefined;
  return checkedHeader(scope, node, name);
}

/** Empty is a word here: nothing stands before the token. */
export function prefixAt({ scope, fields }: Reader): string {
  const node = fields.get("prefix");
  if (node === undefined) return "Bearer";
  if (node.kind === "scalar" && node.value === "") return "";
  const prefix = readText(scope.report, node, "`prefix`") ?? "";
  if (!/^[\x21-\x7e]*(?: [\x21-\x7e]+)*$/.test(prefix) || prefix.includes("$")) {
    scope.report.error(node.at, "`prefix` must be words of plain ASCII without `$`; one blank follows it");
  }
  return prefix;
}

export function domainsAt({ scope, fields }: Reader): readonly PatternSource[] | undefined {
  const node = fields.get("trusted_domains");
  const texts = node && readTexts(scope.report, node, "`trusted_domains`");
  if (node !== undefined && texts?.length === 0) {
    scope.report.error(node.at, "`trusted_domains` is empty, so nothing would ever be replaced");
  }
  return texts?.flatMap(({ text, at }) => {
    const parsed = parseDomain(text);
    if (parsed.ok) return [parsed.pattern];
    scope.report.error(at, parsed.problem);
    return [];
  });
}

export function locationsAt({ scope, fields }: Reader): readonly PlaceholderLocation[] {
  const node = fields.get("injection_location");
  if (node === undefined) return ["header"];
  const nodes = node.kind === "list" ? node.items : [node];
  if (nodes.length === 0) scope.report.error(node.at, "`injection_location` must name at least one place");
  const places = nodes.flatMap((item) => {
    const place = readChoice(scope.report, item, "`injection_location`", LOCATIONS);
    return place === undefined ? [] : [place];
  });
  const open = places.find((place) => place !== "header");
  if (open !== undefined) {
    scope.report.warn(
      node.at,
      `With \`${open}\` the sandbox may publish the secret: what a host stores or shows again, others can read`,
    );
  }
  return [...new Set(places)];
}

export function headerNamesAt({ scope, fields }: Reader): readonly string[] {
  const node = fields.get("header_names");
  if (node === undefined) return ["authorization", "x-api-key"];
  const texts = readTexts(scope.report, node, "`header_names`") ?? [];
  if (node.kind === "list" && node.items.length === 0) {
    scope.report.error(node.at, "`header_names` must name at least one field, or be left out");
  }
  for (const { text, at } of texts) checkedHeader(scope, { ...node, at }, text);
  return [...new Set(texts.map(({ text }) => text.toLowerCase()))];
}

function checkedHeader(scope: Scope, { at }: Pick<TreeNode, "at">, name: string): string | undefined {
  const why = isToken(name) ? whyForbidden(name.toLowerCase().replaceAll("_", "-")) : "is not a field name";
  if (why === undefined) return name;
  scope.report.error(at, `${quoteName(name)} cannot carry a secret: it ${why}`);
  return undefined;
}
