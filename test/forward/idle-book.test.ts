import assert from "node:assert/strict";
import { test } from "node:test";
import { IdleBook, type Idler } from "../../src/forward/idle-book.ts";

type Fake = Idler & { destroyed: boolean };

test("IdleBook closes the oldest of a sandbox that has too many, and of no other", () => {
  const book = new IdleBook({ pool_connections_per_sandbox: 2, pool_connections_total: 99 });
  const [other, first, second, third] = [fake(book, "b"), fake(book, "a"), fake(book, "a"), fake(book, "a")];
  for (const one of [other, first, second, third]) book.add(one);
  assert.deepEqual(
    [other, first, second, third].map(({ destroyed }) => destroyed),
    [false, true, false, false],
  );
});

test("IdleBook makes room in all at the cost of the sandbox that has most", () => {
  const book = new IdleBook({ pool_connections_per_sandbox: 9, pool_connections_total: 3 });
  const few = fake(book, "b");
  const many = [fake(book, "a"), fake(book, "a"), fake(book, "a")];
  for (const one of [few, ...many]) book.add(one);
  assert.deepEqual(
    [few, ...many].map(({ destroyed }) => destroyed),
    [false, true, false, false],
  );
});

test("IdleBook counts none that is used again", () => {
  const book = new IdleBook({ pool_connections_per_sandbox: 1, pool_connections_total: 9 });
  const [used, idle] = [fake(book, "a"), fake(book, "a")];
  book.add(used);
  book.remove(used);
  book.remove(used);
  book.add(idle);
  assert.deepEqual([used.destroyed, idle.destroyed], [false, false]);
});

function fake(book: IdleBook, sandbox: string): Fake {
  const one = {
    poolKey: `${sandbox} https a.example 443`,
    destroyed: false,
    destroy: () => {
      one.destroyed = true;
      book.remove(one);
    },
  };
  return one;
}
