/** Patterns of one host have no strangers under them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { outsidersOf } from "../../src/config/outsiders.ts";

test("outsidersOf: any name, a company's customers, nobody, one host", () => {
  assert.deepEqual(outsidersOf({ kind: "any" }), { kind: "public", suffix: "" });
  assert.deepEqual(outsidersOf({ kind: "wildcard", base: "github.io" }), {
    kind: "private",
    suffix: "github.io",
  });
  assert.deepEqual(outsidersOf({ kind: "wildcard", base: "example.com" }), { kind: "none" });
  assert.equal(outsidersOf({ kind: "exact", host: "a.example" }), undefined);
});
