import assert from "node:assert/strict";
import { test } from "node:test";
import { allow, reach, refuse } from "../../src/decide/verdict.ts";
import type { Reason } from "../../src/model/decision.ts";
import { ask, buildPolicy, known } from "./build.ts";

const ENFORCE = buildPolicy({
  network: { allowlist: [{ id: "r", domain: "a.example.com", transform: { Authorization: "x" } }] },
});
const EVALUATE = buildPolicy({ mode: "evaluate_only", network: {} });
const RULE = known(ENFORCE.network?.rules.exact.get("a.example.com")?.[0], "no rule");
const QUESTION = ask("https://a.example.com/");

const OPINIONS: readonly Reason[] = [
  "no-rule-matched",
  "rule-denies",
  "needs-inspection",
  "method-refused",
  "path-ambiguous",
];
const IN_FORCE: readonly Reason[] = [
  "network-disabled",
  "loopback",
  "address-not-public",
  "address-denied",
  "names-disagree",
  "plaintext-secret",
  "identity-unknown",
  "secret-unavailable",
  "placeholder-misplaced",
];

test("reach: the permit leads to the destination, and injects nothing", () => {
  assert.deepEqual(
    { ...reach(QUESTION, RULE) },
    {
      client: QUESTION.client,
      destination: QUESTION.destination,
      scheme: "https",
      rule: "r",
      injections: [],
      mayReachPrivate: true,
    },
  );
});

test("allow: the permit says that the answer is not searched, where the rule says so", () => {
  assert.equal(allow(QUESTION, "https", { ...RULE, scrub: false }).permit.scrub, false);
  assert.equal("scrub" in allow(QUESTION, "https", RULE).permit, false);
});

test("allow: the permit carries the rule's injections and the scheme that was decided", () => {
  const { permit, ...rest } = allow(QUESTION, "tcp", RULE);
  assert.deepEqual(rest, { verdict: "allow", reason: "rule-allows", would: undefined });
  assert.deepEqual(
    { ...permit },
    {
      client: QUESTION.client,
      destination: QUESTION.destination,
      scheme: "tcp",
      rule: "r",
      injections: RULE.injections,
      mayReachPrivate: true,
    },
  );
  assert.equal(permit.injections.length, 1);
});

test("refuse: in enforce every reason denies, and the rule concerned is named", () => {
  for (const reason of [...OPINIONS, ...IN_FORCE]) {
    assert.deepEqual(refuse(QUESTION, ENFORCE, reason, RULE), { verdict: "deny", reason, rule: "r" });
    assert.deepEqual(refuse(QUESTION, ENFORCE, reason), { verdict: "deny", reason, rule: undefined });
  }
});

test("refuse: in evaluate_only what guards the machine or a secret still denies", () => {
  for (const reason of IN_FORCE) {
    assert.deepEqual(refuse(QUESTION, EVALUATE, reason), { verdict: "deny", reason, rule: undefined });
  }
});

test("refuse: in evaluate_only an opinion becomes an allowance that injects nothing", () => {
  for (const reason of OPINIONS) {
    const decision = refuse(QUESTION, EVALUATE, reason, RULE);
    assert.equal(decision.verdict, "allow");
    assert.deepEqual([decision.reason, decision.would], [reason, "deny"]);
    assert.deepEqual([decision.permit.rule, decision.permit.injections], ["r", []]);
    assert.equal(decision.permit.mayReachPrivate, true);
  }
});

test("refuse: in evaluate_only no rule opens no private address", () => {
  const decision = refuse(QUESTION, EVALUATE, "no-rule-matched");
  assert.equal(decision.verdict, "allow");
  assert.deepEqual([decision.permit.rule, decision.permit.mayReachPrivate], [undefined, false]);
  assert.deepEqual(
    [decision.permit.client, decision.permit.destination],
    [QUESTION.client, QUESTION.destination],
  );
  assert.equal(decision.permit.scheme, "https");
});
