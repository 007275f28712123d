/** Problems in file order, names quoted safely, the nearest key. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest, quoteName, Report } from "../../src/config/report.ts";

const KEYS = ["allowlist", "denylist", "intercept"];

test("Report: problems come in the order of the file, and an error makes it fail", () => {
  const report = new Report("f");
  report.warn({ line: 9, column: 1 }, "Late");
  assert.equal(report.failed, false);
  report.error({ line: 2, column: 5 }, "Second");
  report.error({ line: 2, column: 1 }, "First");
  assert.equal(report.failed, true);
  assert.deepEqual(
    report.problems().map(({ message, severity }) => `${severity} ${message}`),
    ["error First", "error Second", "warning Late"],
  );
});

test("Report: problems beyond the limit are counted, and warnings leave room for errors", () => {
  const report = new Report("f");
  for (let line = 1; line <= 1_000; line++) report.warn({ line, column: 1 }, "W");
  report.error({ line: 5_000, column: 1 }, "E");
  const problems = report.problems();
  assert.equal(problems.length, 202);
  assert.equal(problems.at(-2)?.message, "E");
  assert.equal(problems.at(-1)?.message, "800 more problems are not shown");
});

test("quoteName: what could break out of the quotation, or a terminal, is escaped", () => {
  assert.equal(quoteName("a`b\n\u001b[31m\u202ec"), "`a\\u0060b\\u000a\\u001b[31m\\u202ec`");
});

test("quoteName: a long name is cut", () => {
  assert.equal(quoteName("x".repeat(100)), `\`${"x".repeat(60)}…\``);
});

const NEAR: readonly (readonly [string, string | undefined])[] = [
  ["alowlist", "allowlist"],
  ["allow_list", "allowlist"],
  ["AllowList", "allowlist"],
  ["allwolist", "allowlist"],
  ["deny-list", "denylist"],
  ["intercpt", "intercept"],
  ["hosts", undefined],
  ["x".repeat(100_000), undefined],
  ["", undefined],
];

for (const [word, expected] of NEAR) {
  test(`nearest: \`${word.slice(0, 12)}\` is meant to be ${expected ?? "none of them"}`, () => {
    assert.equal(nearest(word, KEYS), expected);
  });
}
