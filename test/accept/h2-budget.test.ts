/** A budget is spent, comes back with time, and may be earned. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget } from "../../src/accept/h2-budget.ts";

function spent(budget: Budget, times: number, now: number): boolean[] {
  return Array.from({ length: times }, () => budget.spend(now));
}

test("Budget: a minute's worth may be spent at once", () => {
  assert.deepEqual(spent(new Budget(3, 0), 4, 0), [true, true, true, false]);
});

test("Budget: it comes back with time, up to a minute's worth", () => {
  const budget = new Budget(3, 0);
  spent(budget, 3, 0);
  assert.deepEqual(spent(budget, 2, 20_000), [true, false]);
  assert.deepEqual(spent(budget, 4, 10_000_000), [true, true, true, false]);
});

test("Budget: it can be earned, up to a minute's worth", () => {
  const budget = new Budget(2, 0);
  budget.earn();
  spent(budget, 2, 0);
  budget.earn();
  assert.deepEqual(spent(budget, 2, 0), [true, false]);
});
