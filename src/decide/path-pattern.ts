/** Compiles the path patterns of a rule. The one adapter of re2, whose time is linear in the path. Pure. */
import RE2 from "re2";

export type PathPattern =
  | { readonly ok: true; readonly matches: (path: string) => boolean }
  /** `problem` reads after a colon: "Paths: …". */
  | { readonly ok: false; readonly problem: string };

/** RE2 itself allows 1,000 in a counted repetition; the length bounds what it spends on compiling. */
const MAX_SOURCE = 4_096;

/** RE2's words, and ours for somebody who knows another dialect. */
const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [
    /invalid perl operator: \(\?<?[=!]/,
    "Look-ahead and look-behind are not part of RE2; list the paths that are allowed instead",
  ],
  [
    /invalid escape sequence: \\[1-9k]/,
    "A backreference is not part of RE2, because no automaton can match one in linear time",
  ],
  [/bad repetition operator/, "Possessive and doubled repetitions are not part of RE2"],
  [/invalid repetition size/, "A repetition may count to 1000 at most"],
];

/** Characters that no dialect gives a meaning, then maybe "and anything after it". */
const PLAIN = /^([A-Za-z0-9/_~-]*)(\.\*)?$/;

/** Holds the path while it is matched: re2 reads bytes for a sixth of what a new string costs it. */
const SCRATCH = Buffer.alloc(4_096);

/**
 * RE2 syntax, matched against the whole path, which is ASCII: `/repos/.*` does not match `/v1/repos/x`. `^` and `$`
 * are allowed and change nothing at the ends.
 */
export function compilePath(source: string): PathPattern {
  if (source.length > MAX_SOURCE) return refuse(`A pattern has ${MAX_SOURCE} characters at most`);
  const plain = PLAIN.exec(source);
  if (plain !== null) return { ok: true, matches: plainTest(plain[1] as string, plain[2] !== undefined) };
  try {
    // Alone first: `a)|(?:b` is an error by itself, yet inside our anchors it would cut them in two.
    new RE2(source, "s");
    const pattern = new RE2(`^(?:${source})$`, "s");
    return { ok: true, matches: (path) => pattern.test(toBytes(path)) };
  } catch (error) {
    return refuse(explainProblem((error as Error).message));
  }
}

function plainTest(text: string, open: boolean): (path: string) => boolean {
  return open ? (path) => path.startsWith(text) : (path) => path === text;
}

function toBytes(path: string): Buffer {
  if (path.length > SCRATCH.length) return Buffer.from(path, "latin1");
  return SCRATCH.subarray(0, SCRATCH.write(path, "latin1"));
}

function refuse(problem: string): PathPattern {
  return { ok: false, problem };
}

function explainProblem(message: string): string {
  const known = EXPLANATIONS.find(([symptom]) => symptom.test(message));
  return known === undefined ? `Not a valid RE2 pattern (${message})` : known[1];
}
