import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalJson, isObject, type Json, MAX_DEPTH } from "../../src/hooks/jcs.ts";

const TEXTS: readonly (readonly [value: Json, text: string | undefined])[] = [
  [null, "null"],
  [true, "true"],
  [-0, "0"],
  [1e21, "1e+21"],
  [1e-7, "1e-7"],
  [2 ** 53 - 1, "9007199254740991"],
  [2 ** 53, undefined],
  [-(2 ** 53), undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  ['\u0007"\\/é', '"\\u0007\\"\\\\/é"'],
  ["\ud800", undefined],
  [[1, [2], {}], "[1,[2],{}]"],
  [[1, 2 ** 53], undefined],
  [{ b: 1, a: 2, "": 3 }, '{"":3,"a":2,"b":1}'],
  // By UTF-16 code units: a surrogate pair stands before U+E000.
  [{ "\ue000": 1, "\u{10000}": 2 }, '{"\u{10000}":2,"\ue000":1}'],
  [{ "\udc00": 1 }, undefined],
  [{ a: "\udc00" }, undefined],
];

for (const [value, text] of TEXTS) {
  test(`canonicalJson: ${JSON.stringify(value)} is ${text ?? "outside the domain"}`, () => {
    assert.equal(canonicalJson(value), text);
  });
}

test("canonicalJson: what is nested too deeply has no text, and breaks nothing", () => {
  let deep: Json = 1;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) deep = [deep];
  assert.equal(typeof canonicalJson(deep), "string");
  assert.equal(canonicalJson([deep]), undefined);
});

test("canonicalJson: the order of members does not count, and the text reads back as the value", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.oneof(fc.integer(), fc.string(), fc.boolean())), (value) => {
      const shuffled = Object.fromEntries(Object.entries(value).reverse());
      const text = canonicalJson(value);
      assert.equal(text, canonicalJson(shuffled));
      assert.deepEqual(JSON.parse(text ?? ""), JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("isObject: a map, and nothing else", () => {
  assert.deepEqual(
    [{}, [], null, "a", undefined].map((value) => isObject(value)),
    [true, false, false, false, false],
  );
});
