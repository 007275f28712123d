import assert from "node:assert/strict";
import { test } from "node:test";
import { compileWhole } from "../../src/base/whole-pattern.ts";

test("compileWhole: the whole text must match, in any script", () => {
  const compiled = compileWhole("a|né.");
  assert.ok(compiled.ok);
  assert.deepEqual(
    ["a", "néé", "ab", "xa", ""].map((text) => compiled.matches(text)),
    [true, true, false, false, false],
  );
  assert.equal(compiled.matches(Buffer.from("néé")), true);
});

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["*_file", /^Not a valid RE2 pattern/],
  ["(?=x)", /^Look-ahead and look-behind/],
  ["a)|(?:b", /^Not a valid RE2 pattern/],
  ["a".repeat(4_097), /^A pattern has 4096 characters at most/],
];

for (const [source, problem] of REFUSED) {
  test(`compileWhole: ${source.slice(0, 20)} is refused in words`, () => {
    const compiled = compileWhole(source);
    assert.ok(!compiled.ok);
    assert.match(compiled.problem, problem);
  });
}
