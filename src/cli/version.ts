/** The program's version, from package.json. */
import { readFileSync } from "node:fs";

export const VERSION: string = versionOf(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
);

function versionOf(text: string): string {
  const { version } = JSON.parse(text) as { version?: unknown };
  return typeof version === "string" ? version : "0.0.0";
}
