import assert from "node:assert/strict";
import { test } from "node:test";
import { createDeadlines } from "../../src/base/deadlines.ts";
import type { Expiring } from "../../src/model/deadline.ts";

test("now is what the clock was told last", () => {
  const deadlines = createDeadlines(100);
  assert.equal(deadlines.now(), 100);
  deadlines.tick(250);
  assert.equal(deadlines.now(), 250);
});

test("tick wakes each entry once its deadline has come, and once alone", () => {
  const deadlines = createDeadlines(0);
  const [soon, late, never] = [entry(10), entry(20), entry(Number.POSITIVE_INFINITY)];
  for (const each of [soon, late, never]) deadlines.add(each);
  deadlines.tick(9);
  assert.equal(soon.woken, 0);
  deadlines.tick(10);
  deadlines.tick(11);
  assert.deepEqual([soon.woken, late.woken], [1, 0]);
  deadlines.tick(1_000_000);
  assert.deepEqual([soon.woken, late.woken, never.woken], [1, 1, 0]);
});

test("tick heeds a deadline that was put off or brought forward, without a word to the clock", () => {
  const deadlines = createDeadlines(0);
  const each = entry(10);
  deadlines.add(each);
  each.deadline = 30;
  deadlines.tick(20);
  assert.equal(each.woken, 0);
  each.deadline = 21;
  deadlines.tick(21);
  assert.equal(each.woken, 1);
});

test("tick wakes again whoever sets another deadline when woken", () => {
  const deadlines = createDeadlines(0);
  const each = entry(10, () => {
    each.deadline = deadlines.now() + 10;
  });
  deadlines.add(each);
  for (let now = 1; now <= 35; now += 1) deadlines.tick(now);
  assert.equal(each.woken, 3);
});

test("tick wakes nobody who was removed, be it by another that it woke", () => {
  const deadlines = createDeadlines(0);
  const first: ReturnType<typeof entry> = entry(10, () => deadlines.remove(second));
  const second: ReturnType<typeof entry> = entry(10, () => deadlines.remove(first));
  const gone = entry(5);
  for (const each of [first, second, gone]) deadlines.add(each);
  deadlines.remove(gone);
  deadlines.tick(10);
  assert.equal(first.woken + second.woken, 1, "in whatever order");
  assert.equal(gone.woken, 0);
});

test("add counts an entry once", () => {
  const deadlines = createDeadlines(0);
  const each = entry(10);
  deadlines.add(each);
  deadlines.add(each);
  deadlines.tick(10);
  assert.equal(each.woken, 1);
});

function entry(deadline: number, then: () => void = () => undefined): Expiring & { woken: number } {
  const each = {
    deadline,
    woken: 0,
    expired() {
      each.woken += 1;
      then();
    },
  };
  return each;
}
