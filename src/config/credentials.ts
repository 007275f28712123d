/** The `credentials` section: what each kind needs, and what entries inject for it. Pure. */
import type { Reader } from "./credential-fields.ts";
import { READERS } from "./credential-types.ts";
import { readId } from "./entry.ts";
import { readChoice, readList, readMap, readText } from "./expect.ts";
import { CREDENTIAL_KEYS } from "./keys.ts";
import { quoteName } from "./report.ts";
import type { CredentialEntry, Scope } from "./scope.ts";
import type { TreeNode } from "./tree.ts";

export type CredentialType = keyof typeof CREDENTIAL_NEEDS;

/** What each kind cannot do without, and what else it may have. */
const CREDENTIAL_NEEDS = {
  bearer_token: [["token"], ["header_name", "prefix"]],
  basic: [["username", "password"], []],
  oauth2: [
    ["client_id", "token_url"],
    ["client_secret", "refresh_token", "scopes", "client_auth", "header_name", "prefix"],
  ],
  environment_variable: [
    ["value", "trusted_domains"],
    ["injection_location", "header_names"],
  ],
  aws_sigv4: [
    ["access_key_id", "secret_access_key", "region", "service"],
    ["session_token", "unsigned_payload"],
  ],
  github_app: [
    ["app_id", "installation_id", "private_key"],
    ["api_url", "permissions", "repositories"],
  ],
  gcp_service_account: [["key"], ["scopes", "audience", "token_url"]],
} as const;

export const CREDENTIAL_TYPES = Object.keys(CREDENTIAL_NEEDS) as readonly CredentialType[];

export function readCredentials(
  scope: Scope,
  node: TreeNode | undefined,
): ReadonlyMap<string, CredentialEntry> {
  const entries = new Map<string, CredentialEntry>();
  const items = (node && readList(scope.report, node, "`credentials`")) ?? [];
  for (const item of items) {
    const entry = readCredential(scope, item);
    const first = entry && entries.get(entry.id);
    if (first !== undefined) {
      scope.report.error(
        item.at,
        `The id ${quoteName(first.id)} is taken by the credential on line ${first.at.line}`,
      );
    } else if (entry !== undefined) entries.set(entry.id, entry);
  }
  return entries;
}

/** An entry's `credential`, or a variable's; undefined where there is none of this id. */
export function useCredential(scope: Scope, node: TreeNode): CredentialEntry | undefined {
  const id = readText(scope.report, node, "`credential`");
  if (id === undefined) return undefined;
  const entry = scope.credentials.get(id);
  if (entry === undefined) {
    scope.report.error(node.at, `No credential has the id ${quoteName(id)}`);
    return undefined;
  }
  entry.used = true;
  return entry;
}

/** A secret that is read and kept for nothing may be one that somebody believes to be in use. */
export function lintCredentials(scope: Scope, workers: number | "auto"): void {
  const { report, credentials } = scope;
  lintRotation(scope, workers);
  for (const { id, at, used, placeholder } of credentials.values()) {
    if (!used && placeholder === undefined) report.warn(at, `No entry uses the credential ${quoteName(id)}`);
  }
}

/** A refresh token that is good for one use is found again by other processes in a file alone. */
function lintRotation({ report, credentials, templates }: Scope, workers: number | "auto"): void {
  if (workers === 1) return;
  for (const { id, at, token } of credentials.values()) {
    if (token?.kind !== "oauth2" || token.refreshToken === undefined) continue;
    const template = templates.get(token.refreshToken);
    if (template?.length === 1 && template[0]?.kind === "file") continue;
    report.warn(
      at,
      `Several workers use the refresh token of ${quoteName(id)}; where it is good for one use, write \`workers: 1\` or keep it in a \`\${file:PATH}\` that the gate may write`,
    );
  }
}

function readCredential(scope: Scope, node: TreeNode): CredentialEntry | undefined {
  const { report } = scope;
  const fields = readMap(report, node, "A credential", CREDENTIAL_KEYS);
  if (fields === undefined) return undefined;
  for (const key of ["id", "type"] as const) {
    if (!fields.has(key)) report.error(fields.at, `\`${key}\` is missing here`);
  }
  const id = readId(report, fields.get("id"));
  const typeNode = fields.get("type");
  const type = typeNode && readChoice(report, typeNode, "`type`", CREDENTIAL_TYPES);
  if (type === undefined || id === undefined) return undefined;
  const reader: Reader = { scope, id, fields };
  if (!checkKeys(reader, type)) return undefined;
  return { id, at: fields.keyAt("id"), injections: [], used: false, ...READERS[type](reader) };
}

function checkKeys({ scope, fields }: Reader, type: CredentialType): boolean {
  const [needed, optional] = CREDENTIAL_NEEDS[type] as readonly [readonly string[], readonly string[]];
  const known = ["id", "type", ...needed, ...optional];
  let complete = true;
  for (const key of CREDENTIAL_KEYS) {
    if (fields.has(key) && !known.includes(key)) {
      scope.report.error(fields.keyAt(key), `A credential of type \`${type}\` has no \`${key}\``);
    } else if (!fields.has(key) && needed.includes(key)) {
      complete = false;
      scope.report.error(fields.at, `A credential of type \`${type}\` needs a \`${key}\``);
    }
  }
  return complete;
}
