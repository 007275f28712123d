import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { answerFailure, refusalOf } from "../../src/accept/refusal.ts";
import { Failure } from "../../src/model/failure.ts";

const DOCS = readFileSync(join(import.meta.dirname, "../../docs/refusals.md"), "utf8");
const ABOUT = { host: "api.example.com", port: 443, connect: false };

test("refusalOf and answerFailure answer as the examples of docs/refusals.md show", () => {
  const examples = [...DOCS.matchAll(/```json\n([^`]*)```/g)].map((match) => match[1]);
  const refusal = refusalOf({ verdict: "deny", reason: "no-rule-matched", rule: undefined }, ABOUT);
  const failure = answerFailure(new Failure("E_CONNECT", "upstream", "No"), ABOUT);
  assert.deepEqual(examples, [refusal.body.toString(), failure.body.toString()]);
});

test("refusalOf and answerFailure use the statuses that docs/refusals.md lists", () => {
  for (const [, reason, status] of DOCS.matchAll(/^\| `([a-z-]+)` \| (\d{3}) \|/gm)) {
    const denial = { verdict: "deny", reason, rule: undefined } as Parameters<typeof refusalOf>[0];
    assert.equal(refusalOf(denial, ABOUT).status, Number(status), reason);
  }
  const codes = [...DOCS.matchAll(/^\| `(E_\w+)` \| ([^|]+) \|/gm)];
  assert.equal(codes.length, 10);
  for (const [, code, statuses = ""] of codes) {
    for (const status of (statuses.match(/\d{3}/g) ?? []).map(Number)) {
      const failure = new Failure(code as "E_CONNECT", "gate", "No", { status });
      assert.equal(answerFailure(failure, ABOUT).status, status, code);
    }
  }
});
