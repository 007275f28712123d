/** What a sandbox's surroundings are to be, beside what policy says of it: its namespace, its variables. Pure. */
import { resolve } from "node:path";
import { useCredential } from "./credentials.ts";
import { readMap, readText } from "./expect.ts";
import type { Scope } from "./scope.ts";
import type { MapEntry, TreeNode } from "./tree.ts";

/** The absolute path of a network namespace, such as `/run/netns/box`. */
export function readNetns({ report, folder }: Scope, node: TreeNode): string | undefined {
  const path = readText(report, node, "`netns`");
  return path === undefined ? undefined : resolve(folder, path);
}

export function readVariables(scope: Scope, node: TreeNode): Readonly<Record<string, string>> {
  const { report } = scope;
  if (node.kind !== "map") {
    report.error(node.at, "`env` must be a map of variables");
    return {};
  }
  const variables: Record<string, string> = {};
  for (const entry of node.entries) {
    const value = readVariable(scope, entry);
    if (value !== undefined) variables[entry.key] = value;
  }
  return variables;
}

/** Text as it is: a secret has no business inside the sandbox. */
function readVariable(scope: Scope, { key, keyAt, value }: MapEntry): string | undefined {
  const { report } = scope;
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) {
    report.error(keyAt, "This is not the name of a variable");
    return undefined;
  }
  if (value.kind === "map") return readPlaceholder(scope, value);
  if (value.kind === "scalar" && value.value === "") return "";
  const text = readText(report, value, "A variable");
  if (text === undefined) return undefined;
  if (/\$\{(?:env|file|exec|vault|credential):/.test(text)) {
    report.error(value.at, "A variable is plain text: a secret in it would be inside the sandbox");
    return undefined;
  }
  if (text.includes("\0")) {
    report.error(value.at, "A variable must not hold a NUL");
    return undefined;
  }
  return text;
}

/** `{ credential: ID }`: the variable holds what stands for the secret. */
function readPlaceholder(scope: Scope, value: TreeNode): string | undefined {
  const { report } = scope;
  const fields = readMap(report, value, "A variable", ["credential"] as const);
  const node = fields?.get("credential");
  if (fields === undefined) return undefined;
  if (node === undefined) {
    report.error(fields.at, "`credential` is missing here");
    return undefined;
  }
  const credential = useCredential(scope, node);
  if (credential === undefined) return undefined;
  if (credential.placeholder !== undefined) return credential.placeholder.placeholder;
  report.error(node.at, "Only a credential of type `environment_variable` has a placeholder to put here");
  return undefined;
}
