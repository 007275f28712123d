/** What `run` and `attach` need of a config: the network of one sandbox, and what must stay out of it. */
import { join } from "node:path";
import { loadConfig, loadConfigWithNetwork } from "../config/load.ts";
import type { Config, LoadResult, TemplatePart } from "../model/config.ts";
import { KEY_FILE } from "../pki/ca-files.ts";
import { renderProblem } from "./check.ts";
import { DEFAULT_CONFIG, type OptionValues, stringOf, UsageError, unknownSandbox } from "./command.ts";

export interface JailConfig {
  readonly config: Config;
  /** Undefined for whoever the top-level `network` is for. */
  readonly sandbox: string | undefined;
}

/** Prints what is wrong with the file; undefined where it cannot be used. Throws a UsageError. */
export function jailConfigOf(values: OptionValues): JailConfig | undefined {
  const sandbox = stringOf(values, "sandbox");
  const network = stringOf(values, "network");
  if (sandbox !== undefined && network !== undefined) {
    throw new UsageError("--sandbox has a network of its own: give it or --network");
  }
  const loaded = load(stringOf(values, "config") ?? DEFAULT_CONFIG, network);
  if (!loaded.ok) {
    for (const problem of loaded.problems) process.stderr.write(`${renderProblem(problem)}\n`);
    return undefined;
  }
  const { config } = loaded;
  if (sandbox !== undefined && !config.policy.sandboxes.some(({ id }) => id === sandbox)) {
    throw unknownSandbox(sandbox, config.policy.sandboxes);
  }
  return { config, sandbox };
}

export interface Hidden {
  /** Names of variables that hold secrets. */
  readonly variables: ReadonlySet<string>;
  /** Files that hold secrets. */
  readonly secretFiles: readonly string[];
  /** Files that decide what the sandbox may do, or tell of it. */
  readonly readOnlyFiles: readonly string[];
}

/** A config with a secret in words is itself one. */
export function hiddenOf(config: Config, networkFile: string | undefined): Hidden {
  const templates = [...config.templates.values()];
  const parts: readonly TemplatePart[] = templates.flat();
  const configs = networkFile === undefined ? [config.file] : [config.file, networkFile];
  const spoken = templates.some((template) => template.every(({ kind }) => kind === "literal"));
  const records = config.recordsFile.startsWith("/") ? [config.recordsFile] : [];
  return {
    variables: new Set(parts.flatMap(variableOf)),
    secretFiles: [
      join(config.caDir, KEY_FILE),
      ...parts.flatMap((part) => (part.kind === "file" ? [part.path] : [])),
      ...(spoken ? configs : []),
    ],
    readOnlyFiles: [config.caDir, ...records, ...configs],
  };
}

/** The directory of systemd's credentials lies under `/run`, which is not there inside; nor shall its path be. */
function variableOf(part: TemplatePart): readonly string[] {
  if (part.kind === "credential") return ["CREDENTIALS_DIRECTORY"];
  return part.kind === "env" ? [part.name] : [];
}

function load(file: string, network: string | undefined): LoadResult {
  return network === undefined ? loadConfig(file, 1) : loadConfigWithNetwork(file, network, 1);
}
