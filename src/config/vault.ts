/** The `vault` section: where `${vault:…}` leads, and what the gate shows there. Pure. */
import type { VaultSource } from "../model/credential.ts";
import { readMap, readText } from "./expect.ts";
import { readServiceUrl } from "./http-endpoint.ts";
import { VAULT_KEYS } from "./keys.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { TreeNode } from "./tree.ts";

const TOKEN = "vault.token";

export function readVault(scope: Scope, node: TreeNode | undefined): VaultSource | undefined {
  const { report } = scope;
  const fields = node && readMap(report, node, "`vault`", VAULT_KEYS);
  if (fields === undefined) return undefined;
  for (const key of ["address", "token"] as const) {
    if (!fields.has(key)) report.error(fields.at, `\`${key}\` is missing here`);
  }
  const [address, token, name] = (["address", "token", "namespace"] as const).map((key) => fields.get(key));
  const endpoint = address && readServiceUrl(report, address, "`address`");
  if (endpoint?.target.includes("?") === true) {
    report.error(fields.keyAt("address"), "`address` must not have a query");
  }
  const template = token && readToken(scope, token);
  const namespace = name && readNamespace(scope, name);
  if (endpoint === undefined || template === undefined) return undefined;
  const target = endpoint.target.replace(/\/+$/, "");
  return { endpoint: { ...endpoint, target }, token: TOKEN, namespace };
}

function readNamespace({ report }: Scope, node: TreeNode): string | undefined {
  const namespace = readText(report, node, "`namespace`");
  if (namespace === undefined || /^[\w./-]+$/.test(namespace)) return namespace;
  report.error(node.at, "`namespace` must be of letters, digits, dots, hyphens, underscores and slashes");
  return undefined;
}

/** It is there from the start: whatever has to be waited for would have the vault wait too. */
function readToken(scope: Scope, node: TreeNode): string | undefined {
  if (node.kind === "scalar" && /\$\{(?:vault|exec):/.test(String(node.value))) {
    scope.report.error(node.at, "The vault's own `token` must come from a variable or a file");
    return undefined;
  }
  return readTemplate(scope, node, { what: "`token`", key: TOKEN, secret: true }) && TOKEN;
}
