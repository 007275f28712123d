import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../src/hooks/jcs.ts";
import { parseTargetPath, setAt } from "../../src/hooks/target-path.ts";

const PATHS: readonly (readonly [text: string, path: unknown])[] = [
  ["$target", []],
  ["$policy_target.a", ["a"]],
  ["$target.a[0]", ["a", 0]],
  ['$target["X-Trace"].b_1', ["X-Trace", "b_1"]],
  ["$targets.a", "transform_target_forbidden"],
  ["$.a", "transform_target_forbidden"],
  ["", "transform_target_forbidden"],
  ["$context.tool_call", "transform_target_forbidden"],
  ["$target.", "transform_invalid"],
  ["$target..a", "transform_invalid"],
  ["$target[-1]", "transform_invalid"],
  ["$target[*]", "transform_invalid"],
  ["$target['a']", "transform_invalid"],
  ['$target["a b"]', "transform_invalid"],
];

for (const [text, path] of PATHS) {
  test(`parseTargetPath: ${text} is ${JSON.stringify(path)}`, () => {
    const parsed = parseTargetPath(text);
    assert.deepEqual(parsed.ok ? parsed.path : parsed.reason, path);
  });
}

test("setAt: replaces what is there, and leaves the original alone", () => {
  const target: Json = { a: [1, { b: null }], c: 1 };
  assert.deepEqual(setAt(target, ["a", 1, "b"], 2), { a: [1, { b: 2 }], c: 1 });
  assert.deepEqual(target, { a: [1, { b: null }], c: 1 });
  assert.equal(setAt(target, [], 7), 7);
});

test("setAt: a place that is not there, or of another kind, is no place", () => {
  const target: Json = { a: [1], c: 1 };
  for (const path of [
    ["x"],
    ["a", 1],
    ["a", "0"],
    [0],
    ["c", "d"],
    ["toString"],
    ["a", 0, "x"],
    ["__proto__"],
  ]) {
    assert.equal(setAt(target, path, 1), undefined, String(path));
  }
});
