/** Reads a config file whole: text, tree, sections, checked values. */
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { compilePath } from "../decide/path-pattern.ts";
import type { Config, LoadResult, Template } from "../model/config.ts";
import type { NetworkSource, PolicySource } from "../model/policy.ts";
import { checkApprovers, readApprovals } from "./approvals.ts";
import { lintCredentials, readCredentials } from "./credentials.ts";
import { type Fields, present, readChoice, readInteger, readMap, readText } from "./expect.ts";
import { checkInjected, readHookOptions, readHooks } from "./hooks.ts";
import { CA_KEYS, RECORDS_KEYS, TOP_KEYS } from "./keys.ts";
import { readLimits } from "./limits.ts";
import { readListen } from "./listen.ts";
import { readNetwork } from "./network.ts";
import { parseYaml } from "./parse.ts";
import { Report } from "./report.ts";
import { readSandboxes } from "./sandboxes.ts";
import type { CredentialEntry, Scope } from "./scope.ts";
import type { Position, TreeNode } from "./tree.ts";
import { readUpstream } from "./upstream.ts";
import { readVault } from "./vault.ts";

type TopFields = Fields<(typeof TOP_KEYS)[number]>;

const MAX_FILE_BYTES = 1_048_576;
const START: Position = { line: 1, column: 1 };
const MAX_WORKERS = 64;

/** Reads and checks `file`. Never throws: what is wrong with the file is in the result, by line and column. */
export function loadConfig(file: string, generation: number): LoadResult {
  const path = resolve(file);
  const read = readWhole(path);
  if (read.ok) return loadConfigText(read.text, path, generation);
  return failed(path, read.problem);
}

/**
 * The same, with another file's `network` section in the place of the top-level one; that file is the section itself.
 * Its digest is of both.
 */
export function loadConfigWithNetwork(file: string, networkFile: string, generation: number): LoadResult {
  const loaded = loadConfig(file, generation);
  if (!loaded.ok) return loaded;
  const path = resolve(networkFile);
  const read = readWhole(path);
  if (!read.ok) return failed(path, read.problem);
  const report = new Report(path);
  const parsed = parseYaml(read.text);
  if (!parsed.ok) {
    for (const { at, message } of parsed.problems) report.error(at, message);
    return { ok: false, problems: report.problems() };
  }
  const { config } = loaded;
  const { allowRanges, denyRanges, parent } = config.policy;
  const templates = new Map([...config.templates].filter(([key]) => !key.startsWith("network.")));
  const credentials = credentialsOf(config);
  const { certificates } = config;
  const scope: Scope = {
    report,
    folder: dirname(path),
    templates,
    allowRanges,
    denyRanges,
    parent,
    vault: config.vault,
    credentials,
    certificates,
    checkPath,
  };
  const network = readNetwork(scope, parsed.root, "network");
  if (report.failed) return { ok: false, problems: report.problems() };
  const digest = createHash("sha256").update(config.text).update(read.text).digest("hex");
  const policy = { ...config.policy, network, digest };
  return {
    ok: true,
    config: { ...config, policy, templates },
    warnings: [...loaded.warnings, ...report.problems()],
  };
}

/** Those of a config that was loaded well: its templates and warnings are known. */
function credentialsOf({ text, file, vault }: Config): Scope["credentials"] {
  const report = new Report(file);
  const parsed = parseYaml(text);
  const fields = parsed.ok ? readMap(report, parsed.root, "The file", TOP_KEYS) : undefined;
  const scope: Scope = {
    report,
    folder: dirname(file),
    templates: new Map(),
    allowRanges: [],
    denyRanges: [],
    vault,
    credentials: new Map(),
    certificates: new Map(),
    checkPath,
  };
  return readCredentials(scope, present(fields?.get("credentials")));
}

/** The same for text that was read already; `file` says where relative paths start. */
export function loadConfigText(text: string, file: string, generation: number): LoadResult {
  const path = resolve(file);
  // Longer texts cost more to refuse than to read.
  if (text.length > MAX_FILE_BYTES) return failed(path, "The file is larger than 1 MiB");
  const report = new Report(path);
  const parsed = parseYaml(text);
  if (!parsed.ok) {
    for (const { at, message } of parsed.problems) report.error(at, message);
    return { ok: false, problems: report.problems() };
  }
  const scope: Scope = {
    report,
    folder: dirname(path),
    templates: new Map<string, Template>(),
    allowRanges: [],
    denyRanges: [],
    vault: undefined,
    credentials: new Map(),
    certificates: new Map(),
    checkPath,
  };
  const digest = createHash("sha256").update(text).digest("hex");
  const config = readTop(scope, parsed.root, { file: path, text, generation, digest });
  if (config === undefined || report.failed) return { ok: false, problems: report.problems() };
  return { ok: true, config, warnings: report.problems() };
}

interface Origin {
  readonly file: string;
  readonly text: string;
  readonly generation: number;
  readonly digest: string;
}

function readTop(start: Scope, root: TreeNode, origin: Origin): Config | undefined {
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
  const network = readNetwork(scope, fields.get("network"), "network");
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

function checkPath(source: string): string | undefined {
  const compiled = compilePath(source);
  return compiled.ok ? undefined : compiled.problem;
}

function failed(file: string, message: string): LoadResult {
  return { ok: false, problems: [{ severity: "error", file, ...START, message }] };
}

type WholeFile =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

/** A regular file of UTF-8, at most 1 MiB. A pipe would block us, and a device has no end. */
function readWhole(path: string): WholeFile {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { ok: false, problem: "This is not a regular file" };
    const buffer = Buffer.allocUnsafe(MAX_FILE_BYTES + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    if (length > MAX_FILE_BYTES) return { ok: false, problem: "The file is larger than 1 MiB" };
    return decode(buffer.subarray(0, length));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return { ok: false, problem: `The file cannot be read (${code})` };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function decode(bytes: Buffer): WholeFile {
  try {
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { ok: false, problem: "The file is not UTF-8" };
  }
}
