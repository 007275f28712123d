/** Reads the policy tables of test/cases: a policy as an operator writes it, and what it says to each question. */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import type { Settings } from "./build.ts";

export interface CaseTable {
  readonly file: string;
  readonly about: string;
  readonly policy: Settings;
  readonly cases: readonly Case[];
}

/** One row. `allow` names the rule; `deny` the reason. */
export interface Case {
  /** Where the case is one of a known kind, its id comes first. */
  readonly case: string;
  /** `METHOD URL`; for raw bytes `tcp://host:port`. */
  readonly ask: string;
  /** The sandbox that asks. */
  readonly sandbox?: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** What the name resolved to. */
  readonly resolves?: string;
  readonly allow?: string;
  readonly deny?: string;
  /** Beside `deny`: the rule concerned; absent: none. Beside `allow` in evaluate_only: see `would`. */
  readonly rule?: string;
  /** In evaluate_only: the reason that would have denied. */
  readonly would?: string;
  readonly interception?: "none" | "tunnel" | "inspect";
  readonly injected?: readonly string[];
}

const FOLDER = new URL("../cases/", import.meta.url);

export function readCaseTables(): readonly CaseTable[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".yaml"));
  return files.map((file) => ({
    file,
    ...(parse(readFileSync(new URL(file, FOLDER), "utf8")) as Omit<CaseTable, "file">),
  }));
}
