/** Reads a V8 CPU profile and names the functions that spent the time themselves. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

const ROWS = 30;

/** Lines of `share function place`, of the time that was not idle. */
export function hottest(directory: string): readonly string[] {
  const file = readdirSync(directory).find((name) => name.endsWith(".cpuprofile"));
  if (file === undefined) throw new Error("Node.js wrote no profile");
  const profile: Profile = JSON.parse(readFileSync(join(directory, file), "utf8"));
  const names = new Map(profile.nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const spent = new Map<string, number>();
  for (const [index, id] of profile.samples.entries()) {
    const name = names.get(id) ?? "";
    if (name === "(idle)") continue;
    spent.set(name, (spent.get(name) ?? 0) + (profile.timeDeltas[index] ?? 0));
  }
  const total = [...spent.values()].reduce((sum, each) => sum + each, 0);
  return [...spent]
    .sort(([, a], [, b]) => b - a)
    .slice(0, ROWS)
    .map(([name, time]) => `${((time / total) * 100).toFixed(1).padStart(5)} %  ${name}`);
}

function nameOf({ functionName, url, lineNumber }: Profile["nodes"][number]["callFrame"]): string {
  const place = url.replace(/^.*\/(src|node_modules)\//, "$1/");
  return `${functionName || "(anonymous)"}${place === "" ? "" : ` ${place}:${lineNumber + 1}`}`;
}
