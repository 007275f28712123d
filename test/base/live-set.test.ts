import assert from "node:assert/strict";
import { test } from "node:test";
import { LiveSet } from "../../src/base/live-set.ts";

test("recheck cuts what the new policy does not allow, and keeps the rest", () => {
  const set = new LiveSet<string>();
  const [a, b] = [live("a"), live("b")];
  set.add(a);
  set.add(b);
  assert.equal(set.size, 2);
  assert.equal(set.recheck("ab"), 0);
  assert.equal(set.recheck("b"), 1);
  assert.deepEqual([a.cuts, b.cuts, set.size], [1, 0, 1]);
  assert.equal(set.recheck("b"), 0);
  assert.equal(a.cuts, 1, "once");
});

test("recheck does not mind that a cut removes itself or adds another", () => {
  const set = new LiveSet<string>();
  const late = live("z");
  const a = live("a", () => {
    set.remove(a);
    set.add(late);
  });
  set.add(a);
  assert.equal(set.recheck(""), 1);
  assert.deepEqual([a.cuts, late.cuts, set.size], [1, 0, 1]);
});

test("remove forgets what came to its end", () => {
  const set = new LiveSet<string>();
  const a = live("a");
  set.add(a);
  set.remove(a);
  set.remove(a);
  assert.equal(set.recheck(""), 0);
  assert.equal(a.cuts, 0);
});

test("clear cuts everything", () => {
  const set = new LiveSet<string>();
  const entries = [live("a"), live("b")];
  for (const each of entries) set.add(each);
  set.clear();
  assert.deepEqual([...entries.map(({ cuts }) => cuts), set.size], [1, 1, 0]);
});

/** Holds as long as the policy has its letter. */
function live(letter: string, then: () => void = () => undefined) {
  const entry = {
    cuts: 0,
    holds: (policy: string) => policy.includes(letter),
    cut() {
      entry.cuts += 1;
      then();
    },
  };
  return entry;
}
