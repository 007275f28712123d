import assert from "node:assert/strict";
import { test } from "node:test";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import { narrowDecision, remarkDenial } from "../../src/decide/narrow-decision.ts";
import type { Allowance } from "../../src/model/decision.ts";
import { ask, buildPolicy } from "./build.ts";

const QUESTION = ask("https://api.example.com/");
const NETWORK = { allowlist: [{ id: "api", domain: "api.example.com", transform: { Authorization: "x" } }] };

test("narrowDecision: a hook's no is a denial, under the rule that had allowed", () => {
  const policy = buildPolicy({ network: NETWORK });
  const allowance = decideExchange(QUESTION, policy) as Allowance;
  assert.deepEqual(narrowDecision(QUESTION, allowance, policy, "hook-denied"), {
    verdict: "deny",
    reason: "hook-denied",
    rule: "api",
  });
});

test("narrowDecision: in evaluate_only it is an opinion, and nothing is injected", () => {
  const policy = buildPolicy({ network: NETWORK, mode: "evaluate_only" });
  const allowance = decideExchange(QUESTION, policy) as Allowance;
  assert.equal(allowance.permit.injections.length, 1);
  const decision = narrowDecision(QUESTION, allowance, policy, "hook-denied") as Allowance;
  assert.deepEqual([decision.verdict, decision.reason, decision.would], ["allow", "hook-denied", "deny"]);
  assert.deepEqual([decision.permit.injections, decision.permit.rule], [[], "api"]);
});

test("narrowDecision: where no rule had allowed, none is concerned", () => {
  const policy = buildPolicy({ network: NETWORK, mode: "evaluate_only" });
  const elsewhere = ask("https://other.example.com/");
  const allowance = decideExchange(elsewhere, policy) as Allowance;
  const decision = narrowDecision(elsewhere, allowance, policy, "hook-denied") as Allowance;
  assert.equal(decision.permit.rule, undefined);
});

test("remarkDenial: the exchange goes on as it was, and the record says what would have been", () => {
  const allowance = decideExchange(QUESTION, buildPolicy({ network: NETWORK })) as Allowance;
  assert.deepEqual(remarkDenial(allowance), { ...allowance, would: "deny" });
});

test("allow: an entry with approve: true says so, is inspected, and stays shut where it is kept so", () => {
  const policy = buildPolicy({
    network: {
      allowlist: [
        { domain: "a.example.com", approve: true },
        { domain: "b.example.com", approve: true, intercept: "never" },
        { domain: "c.example.com" },
      ],
    },
  });
  const decided = (name: string): unknown => {
    const decision = decideExchange(ask(`https://${name}.example.com/`), policy);
    return decision.verdict === "allow" && decision.approve;
  };
  assert.deepEqual([decided("a"), decided("b"), decided("c")], [true, true, undefined]);
  const outside = (name: string): unknown =>
    decideConnection(ask(`https://${name}.example.com/`, { visibility: "destination" }), policy).verdict;
  assert.deepEqual([outside("a"), outside("b"), outside("c")], ["inspect", "tunnel", "tunnel"]);
});

test("narrowDecision: the reason is the one of whoever said no", () => {
  const policy = buildPolicy({ network: NETWORK });
  const allowance = decideExchange(QUESTION, policy) as Allowance;
  for (const reason of ["approval-timeout", "rule-denies"] as const) {
    assert.equal(narrowDecision(QUESTION, allowance, policy, reason).reason, reason);
  }
});
