/** Compiles the path patterns of a rule: RE2, or a plain comparison where the pattern is plain. Pure. */
import { compileWhole } from "../base/whole-pattern.ts";

export type PathPattern =
  | { readonly ok: true; readonly matches: (path: string) => boolean }
  /** `problem` reads after a colon: "Paths: …". */
  | { readonly ok: false; readonly problem: string };

/** Characters that no dialect gives a meaning, then maybe "and anything after it". */
const PLAIN = /^([A-Za-z0-9/_~-]{0,4096})(\.\*)?$/;

/** Holds the path while it is matched: re2 reads bytes for a sixth of what a new string costs it. */
const SCRATCH = Buffer.alloc(4_096);

/**
 * RE2 syntax, matched against the whole path, which is ASCII: `/repos/.*` does not match `/v1/repos/x`. `^` and `$`
 * are allowed and change nothing at the ends.
 */
export function compilePath(source: string): PathPattern {
  const plain = PLAIN.exec(source);
  if (plain !== null) return { ok: true, matches: plainTest(plain[1] as string, plain[2] !== undefined) };
  const compiled = compileWhole(source);
  if (!compiled.ok) return compiled;
  return { ok: true, matches: (path) => compiled.matches(toBytes(path)) };
}

function plainTest(text: string, open: boolean): (path: string) => boolean {
  return open ? (path) => path.startsWith(text) : (path) => path === text;
}

function toBytes(path: string): Buffer {
  if (path.length > SCRATCH.length) return Buffer.from(path, "latin1");
  return SCRATCH.subarray(0, SCRATCH.write(path, "latin1"));
}
