import assert from "node:assert/strict";
import { test } from "node:test";
import { readResolution, readScope } from "../../src/hooks/resolution.ts";

test("readResolution: a whole word, for once unless it says more", () => {
  assert.deepEqual(readResolution('{"outcome":"approve","by":"ada"}'), {
    approve: true,
    by: "ada",
    scope: { kind: "once" },
  });
  assert.deepEqual(readResolution('{"outcome":"reject","by":"ada","for":"30m"}'), {
    approve: false,
    by: "ada",
    scope: { kind: "time", ms: 1_800_000 },
  });
});

for (const text of [
  undefined,
  "",
  "[]",
  "null",
  "{}",
  '{"outcome":"approve"}',
  '{"outcome":"yes","by":"a"}',
  '{"outcome":true,"by":"a"}',
  '{"outcome":"approve","by":""}',
  '{"outcome":"approve","by":"a\\nb"}',
  '{"outcome":"approve","by":7}',
  '{"outcome":"approve","by":"a","for":"ever"}',
  '{"outcome":"approve","by":"a","for":null,"more":1}',
]) {
  test(`readResolution: ${text} is no word`, () => {
    assert.equal(readResolution(text), undefined);
  });
}

test("readScope: once, sandbox, or minutes up to a week", () => {
  assert.deepEqual(
    ["once", "sandbox", "1m", "10080m", "10081m", "0m", "m", "1h", "", 5, undefined].map((value) =>
      readScope(value),
    ),
    [
      { kind: "once" },
      { kind: "sandbox" },
      { kind: "time", ms: 60_000 },
      { kind: "time", ms: 604_800_000 },
      ...Array.from({ length: 7 }, () => undefined),
    ],
  );
});
