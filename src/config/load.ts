/** Reads a config file whole: text, tree, sections, checked values. */
import { createHash } from "node:crypto";
import { dirname, resolve } from "node:path";
import { compilePath } from "../decide/path-pattern.ts";
import type { Config, LoadResult, Template } from "../model/config.ts";
import { readCredentials } from "./credentials.ts";
import { present, readMap } from "./expect.ts";
import { TOP_KEYS } from "./keys.ts";
import { readNetwork } from "./network.ts";
import { parseYaml } from "./parse.ts";
import { Report, START } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTop } from "./top.ts";
import { MAX_FILE_BYTES, readWhole } from "./whole-file.ts";

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

function checkPath(source: string): string | undefined {
  const compiled = compilePath(source);
  return compiled.ok ? undefined : compiled.problem;
}

function failed(file: string, message: string): LoadResult {
  return { ok: false, problems: [{ severity: "error", file, ...START, message }] };
}
