/** The top level of a config file: its sections in the order in which they need each other, and its plain keys. */
import { resolve } from "node:path";
import type { Config } from "../model/config.ts";
import type { NetworkSource, PolicySource } from "../model/policy.ts";
import { checkApprovers, readApprovals } from "./approvals.ts";
import { lintCredentials, readCredentials } from "./credentials.ts";
import { type Fields, present, readChoice, readInteger, readMap, readText } from "./expect.ts";
import { checkInjected, readHookOptions, readHooks } from "./hooks.ts";
import { CA_KEYS, RECORDS_KEYS, TOP_KEYS } from "./keys.ts";
import { readLimits } from "./limits.ts";
import { readListen } from "./listen.ts";
import { readNetwork } from "./network.ts";
import { type Report, START } from "./report.ts";
import { readSandboxes } from "./sandboxes.ts";
import type { CredentialEntry, Scope } from "./scope.ts";
import type { TreeNode } from "./tree.ts";
import { readUpstream } from "./upstream.ts";
import { readVault } from "./vault.ts";

export interface Origin {
  readonly file: string;
  readonly text: string;
  readonly generation: number;
  readonly digest: string;
}

type TopFields = Fields<(typeof TOP_KEYS)[number]>;

const MAX_WORKERS = 64;

/** Undefined where nothing can be made of it; what is wrong is in the report of `start`. */
export function readTop(start: Scope, root: TreeNode, origin: Origin): Config | undefined {
  const { report, folder, templates } = start;
  const fields = readMap(report, root, "The file", TOP_KEYS);
  if (fields === undefined) return undefined;
  checkVersion(report, fields);
  const { upstream, certificates, ...ranges } = readUpstream(start, present(fields.get("upstream")));
  const vault = readVault(start, present(fields.get("vault")));
  const bare = { ...start, ...ranges, certificates, vault };
  const scope = { ...bare, credentials: readCredentials(bare, present(fields.get("credentials"))) };
  const sandboxNode = present(fields.get("sandboxes"));
  const listen = readListen(scope, present(fields.get("listen")), holdsAny(sandboxNode));
  const { sources: sandboxes, setups } = readSandboxes(scope, sandboxNode, listen.gateway?.interfaces);
  const network = readNetwork(scope, fields.get("network"), "network", holdsAny(sandboxNode));
  const credentials = [...scope.credentials.values()];
  const hooks = readHooks(report, present(fields.get("hooks")));
  const networks = [network, ...sandboxes.map((sandbox) => sandbox.network)];
  checkInjected(report, fields.keyAt("hooks"), hooks, networks);
  const admin = listen.admin?.token !== undefined;
  const approvals = readApprovals(scope, present(fields.get("approvals")), admin);
  checkApprovers(report, fields.keyAt("approvals"), networks, approvals);
  const workers = readWorkers(scope, fields.get("workers"));
  lintCredentials(scope, workers);
  const { policyNetwork, denylist } = splitDenylist(network);
  const policy: PolicySource = {
    generation: origin.generation,
    digest: origin.digest,
    mode: readMode(report, fields.get("mode")),
    network: policyNetwork,
    denylist,
    sandboxes,
    ...ranges,
    ...policyOf(credentials, scope.vault),
    hooks,
    hookOptions: readHookOptions(report, present(fields.get("hook_options"))),
    approvals,
  };
  warnDisabled(report, fields, !holdsAny(sandboxNode) && network.kind === "disabled");
  return {
    file: origin.file,
    text: origin.text,
    listen,
    caDir: resolve(folder, readPath(scope, present(fields.get("ca")), "`ca`", "dir") ?? "certs"),
    workers,
    policy,
    sandboxes: setups,
    templates,
    certificates,
    tokens: credentials.flatMap(({ token }) => token ?? []),
    vault: scope.vault,
    upstream,
    recordsFile: readRecordsFile(scope, present(fields.get("records"))),
    limits: readLimits(report, present(fields.get("limits"))),
  };
}

function readMode(report: Report, node: TreeNode | undefined): PolicySource["mode"] {
  return (node && readChoice(report, node, "`mode`", ["enforce", "evaluate_only"])) ?? "enforce";
}

/** Entries with errors count too: what is said of a file without sandboxes would not help. */
function holdsAny(node: TreeNode | undefined): boolean {
  return node !== undefined && !(node.kind === "list" && node.items.length === 0);
}

/** An API that gives out tokens beside all else that it does is a destination even so: its app's key stays here. */
function policyOf(
  credentials: readonly CredentialEntry[],
  vault: Config["vault"],
): Pick<PolicySource, "placeholders" | "endpoints"> {
  return {
    placeholders: credentials.flatMap(({ placeholder }) => placeholder ?? []),
    endpoints: [
      ...(vault === undefined ? [] : [vault.endpoint.destination]),
      ...credentials.flatMap(({ token }) =>
        token === undefined || token.kind === "github_app" ? [] : [token.endpoint.destination],
      ),
    ],
  };
}

/** After an error this may be its echo. */
function warnDisabled(report: Report, fields: TopFields, disabled: boolean): void {
  if (!disabled || report.failed) return;
  report.warn(fields.keyAt("network"), "`network` is disabled, so everything is refused");
}

function readRecordsFile(scope: Scope, node: TreeNode | undefined): string {
  const file = readPath(scope, node, "`records`", "file") ?? "-";
  return file === "-" ? "-" : resolve(scope.folder, file);
}

function checkVersion(report: Report, fields: TopFields): void {
  const version = fields.get("version");
  if (version === undefined) report.error(START, "The file must say `version: 1`");
  else if (version.kind !== "scalar" || version.value !== 1) {
    report.error(version.at, "This program knows `version: 1` alone");
  }
}

/** The top-level denylist applies to every sandbox, so it stands beside the networks. */
function splitDenylist(network: NetworkSource): {
  readonly policyNetwork: NetworkSource;
  readonly denylist: PolicySource["denylist"];
} {
  if (network.kind === "disabled") return { policyNetwork: network, denylist: [] };
  return { policyNetwork: { ...network, denylist: [] }, denylist: network.denylist };
}

function readWorkers(scope: Scope, node: TreeNode | undefined): Config["workers"] {
  if (node === undefined || (node.kind === "scalar" && node.value === "auto")) return "auto";
  if (node.kind === "scalar" && typeof node.value === "number") {
    return readInteger(scope.report, node, "`workers`", { min: 1, max: MAX_WORKERS }) ?? "auto";
  }
  scope.report.error(node.at, `\`workers\` must be \`auto\` or a number from 1 to ${MAX_WORKERS}`);
  return "auto";
}

/** The one key of a section that is a path. */
function readPath(
  scope: Scope,
  node: TreeNode | undefined,
  what: "`ca`" | "`records`",
  key: (typeof CA_KEYS)[number] | (typeof RECORDS_KEYS)[number],
): string | undefined {
  const keys = what === "`ca`" ? CA_KEYS : RECORDS_KEYS;
  const fields = node && readMap<string>(scope.report, node, what, keys);
  const value = fields?.get(key);
  return value && readText(scope.report, value, `\`${key}\``);
}
