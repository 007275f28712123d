/** Reads config texts for the tests of this room. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfigText } from "../../src/config/load.ts";
import type { TreeNode } from "../../src/config/tree.ts";
import type { Config, LoadResult, Problem } from "../../src/model/config.ts";

const FILE = "/etc/sallyport/sallyport.yaml";

export function loadText(text: string): LoadResult {
  return loadConfigText(text, FILE, 1);
}

/** The config of a text that has no errors. */
export function configOf(text: string): Config {
  const result = loadText(text);
  assert.ok(result.ok, linesOf(result).join("\n"));
  return result.config;
}

/** Everything that is said of a text, as `line:column message`; a warning says that it is one. */
export function linesOf(result: LoadResult): readonly string[] {
  return (result.ok ? result.warnings : result.problems).map(lineOf);
}

export function problemsIn(text: string): readonly string[] {
  return linesOf(loadText(text));
}

/** What each text is told, exactly. */
export function testProblems(
  subject: string,
  prefix: string,
  cases: readonly (readonly [string, string, ...string[]])[],
): void {
  for (const [name, text, ...expected] of cases) {
    test(`${subject}: ${name}`, () => {
      assert.deepEqual(problemsIn(`${prefix}${text}`), expected);
    });
  }
}

/** The values of a tree, without their places. */
export function plain(node: TreeNode): unknown {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(plain);
  return Object.fromEntries(node.entries.map(({ key, value }) => [key, plain(value)]));
}

function lineOf({ severity, line, column, message }: Problem): string {
  return `${line}:${column} ${severity === "warning" ? "warning: " : ""}${message}`;
}
