/** Compiles patterns that must match a whole text. The one adapter of re2, whose time is linear in the text. Pure. */
import RE2 from "re2";

export type WholePattern =
  | { readonly ok: true; readonly matches: (text: string | Buffer) => boolean }
  /** `problem` reads after a colon: "Paths: …". */
  | { readonly ok: false; readonly problem: string };

/** RE2 itself allows 1,000 in a counted repetition; the length bounds what it spends on compiling. */
const MAX_SOURCE = 4_096;

/** RE2's words, and ours for somebody who knows another dialect. */
const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [
    /invalid perl operator: \(\?<?[=!]/,
    "Look-ahead and look-behind are not part of RE2; list what is allowed instead",
  ],
  [
    /invalid escape sequence: \\[1-9k]/,
    "A backreference is not part of RE2, because no automaton can match one in linear time",
  ],
  [/bad repetition operator/, "Possessive and doubled repetitions are not part of RE2"],
  [/invalid repetition size/, "A repetition may count to 1000 at most"],
];

/** RE2 syntax; `^` and `$` are allowed and change nothing at the ends. A Buffer is read as UTF-8. */
export function compileWhole(source: string): WholePattern {
  if (source.length > MAX_SOURCE) return refuse(`A pattern has ${MAX_SOURCE} characters at most`);
  try {
    // Alone first: `a)|(?:b` is an error by itself, yet inside our anchors it would cut them in two.
    new RE2(source, "s");
    const pattern = new RE2(`^(?:${source})$`, "s");
    return { ok: true, matches: (text) => pattern.test(text) };
  } catch (error) {
    return refuse(explainProblem((error as Error).message));
  }
}

function refuse(problem: string): WholePattern {
  return { ok: false, problem };
}

function explainProblem(message: string): string {
  const known = EXPLANATIONS.find(([symptom]) => symptom.test(message));
  return known === undefined ? `Not a valid RE2 pattern (${message})` : known[1];
}
