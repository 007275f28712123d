/** What each reader takes, and what it says of everything else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isNull,
  present,
  readChoice,
  readFlag,
  readInteger,
  readList,
  readMap,
  readText,
  readTexts,
} from "../../src/config/expect.ts";
import { parseYaml } from "../../src/config/parse.ts";
import { Report } from "../../src/config/report.ts";
import type { TreeNode } from "../../src/config/tree.ts";

function nodeOf(text: string): TreeNode {
  const parsed = parseYaml(text);
  assert.ok(parsed.ok);
  return parsed.root;
}

/** What `read` gives, and the problems it reports. */
function run<T>(text: string, read: (report: Report, node: TreeNode) => T): readonly [T, ...string[]] {
  const report = new Report("f");
  const value = read(report, nodeOf(text));
  return [value, ...report.problems().map(({ message }) => message)];
}

test("readMap: known keys are there, unknown ones are reported", () => {
  const [fields, ...problems] = run("{ a: 1, bat: 2 }", (report, node) =>
    readMap(report, node, "`x`", ["a", "b"]),
  );
  assert.ok(fields !== undefined);
  assert.ok(fields.has("a") && !fields.has("b"));
  assert.equal(fields.get("b"), undefined);
  assert.deepEqual(fields.keyAt("a"), { line: 1, column: 3 });
  assert.deepEqual(fields.keyAt("b"), fields.at);
  assert.deepEqual(problems, ["Unknown key `bat` in `x`; known are `a`, `b`"]);
});

test("readMap: anything else is named", () => {
  for (const [text, kind] of [
    ["1", "a number"],
    ["[]", "a list"],
    ["text", "text"],
    ["true", "`true`"],
    ["~", "nothing"],
  ] as const) {
    assert.deepEqual(
      run(text, (report, node) => readMap(report, node, "`x`", ["a"])),
      [undefined, `\`x\` must be a map of keys and values, found ${kind}`],
    );
  }
});

test("present: an empty value is as if it were absent", () => {
  assert.equal(present(undefined), undefined);
  assert.equal(present(nodeOf("~")), undefined);
  assert.ok(present(nodeOf("0")));
  assert.ok(isNull(nodeOf("~")) && !isNull(nodeOf("[]")));
});

test("readList: a list's items, or a problem", () => {
  assert.equal(run("[1, 2]", (report, node) => readList(report, node, "`x`"))[0]?.length, 2);
  assert.deepEqual(
    run("{}", (report, node) => readList(report, node, "`x`")),
    [undefined, "`x` must be a list, found a map"],
  );
});

test("readText: text alone, and not the empty one", () => {
  const read = (report: Report, node: TreeNode) => readText(report, node, "`x`");
  assert.deepEqual(run("abc", read), ["abc"]);
  assert.deepEqual(run('"1"', read), ["1"]);
  assert.deepEqual(run("1.10", read), [undefined, "`x` must be text, found a number; put it in quotes"]);
  assert.deepEqual(run("true", read), [undefined, "`x` must be text, found `true`; put it in quotes"]);
  assert.deepEqual(run("~", read), [undefined, "`x` must be text, found nothing"]);
  assert.deepEqual(run("[a]", read), [undefined, "`x` must be text, found a list"]);
  assert.deepEqual(run('""', read), [undefined, "`x` must not be empty"]);
});

test("readTexts: what is no text is reported and left out", () => {
  const [texts, ...problems] = run("[a, 1, b]", (report, node) => readTexts(report, node, "`x`"));
  assert.deepEqual(
    texts?.map(({ text }) => text),
    ["a", "b"],
  );
  assert.deepEqual(problems, ["Each of `x` must be text, found a number; put it in quotes"]);
  assert.deepEqual(
    run("a", (report, node) => readTexts(report, node, "`x`")),
    [undefined, "`x` must be a list, found text"],
  );
});

test("readFlag: true and false, and no word for them", () => {
  const read = (report: Report, node: TreeNode) => readFlag(report, node, "`x`");
  assert.deepEqual(run("true", read), [true]);
  assert.deepEqual(run("false", read), [false]);
  assert.deepEqual(run("yes", read), [undefined, "`x` must be true or false, found text"]);
});

test("readChoice: one of the words, or the nearest as advice", () => {
  const two = (report: Report, node: TreeNode) => readChoice(report, node, "`x`", ["allow", "deny"]);
  const three = (report: Report, node: TreeNode) =>
    readChoice(report, node, "`x`", ["auto", "always", "never"]);
  const one = (report: Report, node: TreeNode) => readChoice(report, node, "`x`", ["accept"]);
  assert.deepEqual(run("deny", two), ["deny"]);
  assert.deepEqual(run("alow", two), [undefined, "`x` must be `allow` or `deny`; did you mean `allow`?"]);
  assert.deepEqual(run("maybe", three), [undefined, "`x` must be one of `auto`, `always`, `never`"]);
  assert.deepEqual(run("true", one), [undefined, "`x` must be `accept`, found `true`"]);
  assert.deepEqual(run("[a]", three), [
    undefined,
    "`x` must be one of `auto`, `always`, `never`, found a list",
  ]);
});

test("readInteger: plain decimal digits within bounds", () => {
  const read = (report: Report, node: TreeNode) => readInteger(report, node, "`x`", { min: 1, max: 100 });
  assert.deepEqual(run("1", read), [1]);
  assert.deepEqual(run("100", read), [100]);
  for (const text of ["0", "101", "0x10", "010", "1.0", "1e1", "-1", ".inf", ".nan", "+5"]) {
    assert.deepEqual(run(text, read), [undefined, "`x` must be a whole number from 1 to 100"], text);
  }
  assert.deepEqual(run('"5"', read), [undefined, "`x` must be a whole number from 1 to 100, found text"]);
});
