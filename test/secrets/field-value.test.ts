/** What can be a field's value, and what cannot. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { characterProblem, MAX_VALUE, valueProblem } from "../../src/secrets/field-value.ts";

test("valueProblem: visible ASCII, inner blanks and latin1 are fine", () => {
  for (const text of ["a", "Bearer abc def", "!~", "\u00e9\u00ff", "\u0080", "x".repeat(MAX_VALUE)]) {
    assert.equal(valueProblem(text), undefined);
  }
});

const CONTROL = "holds a line break, NUL or another control character";
const BLANK = "starts or ends with a blank or line break";
const CASES: readonly (readonly [string, string])[] = [
  ["", "is empty"],
  ["x".repeat(MAX_VALUE + 1), "is longer than 16 KiB"],
  [" a", BLANK],
  ["a ", BLANK],
  ["\ta", BLANK],
  ["a\r\n", BLANK],
  ["\u00a0a", BLANK],
  [" ", BLANK],
  ["a\r\nX: b", CONTROL],
  ["a\nb", CONTROL],
  ["a\rb", CONTROL],
  ["a\0b", CONTROL],
  ["a\tb", CONTROL],
  ["a\u001bb", CONTROL],
  ["a\u007fb", CONTROL],
  ["a\u010ab", "holds a character that cannot stand in a header"],
  ["\u20ac", "holds a character that cannot stand in a header"],
  ["\u{1f511}", "holds a character that cannot stand in a header"],
];

for (const [text, problem] of CASES) {
  test(`valueProblem: ${JSON.stringify(text).slice(0, 20)} ${problem}`, () => {
    assert.equal(valueProblem(text), problem);
  });
}

test("characterProblem: a piece may be empty and have outer blanks", () => {
  for (const text of ["", " a "]) assert.equal(characterProblem(text), undefined);
  assert.equal(characterProblem("a\n"), CONTROL);
});
