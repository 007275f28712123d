/** docs/refusals.md lists every reason and every failure code, and no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, namesOf, tableRows, unionOf } from "./repository.ts";

const PAGE = "docs/refusals.md";

test("refusals.md: its reasons are those of model/decision.ts", () => {
  const documented = tableRows(PAGE, ["reason"]).flatMap(namesOf);
  assert.deepEqual(differences(unionOf("src/model/decision.ts", "Reason"), documented), []);
});

test("refusals.md: its failure codes are those of model/failure.ts", () => {
  const documented = tableRows(PAGE, ["code", "failure", "failure code"]).flatMap(namesOf);
  assert.deepEqual(differences(unionOf("src/model/failure.ts", "FailureCode"), documented), []);
});
