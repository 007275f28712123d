import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  ApprovalBook,
  type ApprovalKey,
  type Asking,
  type Outcome,
  type PendingApproval,
} from "../../src/hooks/approvals.ts";

const KEY: ApprovalKey = {
  sandbox: "ci-17",
  rule: "api",
  host: "api.example.com",
  port: 443,
  method: "GET",
  path: "/x",
};
const ONCE = { approve: true, by: "ada", scope: { kind: "once" } } as const;
const EXPIRED: Outcome = { kind: "expired" };
const APPROVED: Outcome = { kind: "approved", by: "ada" };

interface Made {
  readonly book: ApprovalBook;
  readonly told: string[];
  now: number;
  ask(more?: Partial<Asking>): Promise<Outcome>;
}

function create(context: TestContext): Made {
  const told: string[] = [];
  const made: Made = {
    told,
    now: 0,
    book: new ApprovalBook({
      now: () => made.now,
      resolved: ({ id }, { by, approve }) => void told.push(`${id} ${by} ${approve}`),
    }),
    ask: (more = {}) =>
      made.book.ask({
        key: KEY,
        why: undefined,
        timeoutMs: 60_000,
        wait: true,
        signal: new AbortController().signal,
        ...more,
      }),
  };
  context.after(() => made.book.close());
  return made;
}

test("ApprovalBook: who waits gets the word that is given, and is then forgotten", async (context) => {
  const { book, told, ask } = create(context);
  const waiting = ask({ why: "sensitive" });
  const [pending] = book.pending();
  assert.ok(pending);
  assert.deepEqual(pending, {
    ...KEY,
    id: pending.id,
    why: "sensitive",
    since: 0,
    until: 60_000,
    waits: true,
  });
  assert.match(pending.id, /^[0-9a-f]{12}$/);
  assert.equal(book.resolve("0123456789ab", ONCE), undefined);
  assert.equal(book.resolve(pending.id, ONCE), pending);
  assert.deepEqual(await waiting, APPROVED);
  assert.equal(book.resolve(pending.id, ONCE), undefined);
  assert.deepEqual([book.pending(), told], [[], [`${pending.id} ada true`]]);
});

test("ApprovalBook: a word for once is for one exchange, though another is the same", async (context) => {
  const { book, ask } = create(context);
  const [first, second] = [ask(), ask()];
  const [one, two] = book.pending();
  book.resolve(one?.id ?? "", ONCE);
  assert.deepEqual(await first, APPROVED);
  book.resolve(two?.id ?? "", { ...ONCE, approve: false, by: "bob" });
  assert.deepEqual(await second, { kind: "rejected", by: "bob" });
});

test("ApprovalBook: a word that was learnt holds for its time, and for the very same key", async (context) => {
  const made = create(context);
  made.book.learn(KEY, { ...ONCE, scope: { kind: "time", ms: 1_000 } });
  assert.deepEqual(await made.ask(), APPROVED);
  assert.deepEqual(await made.ask(), APPROVED);
  for (const other of [
    { path: "/y" },
    { sandbox: undefined },
    { rule: "b" },
    { port: 80 },
    { method: "PUT" },
    { host: "b" },
    { path: null },
  ]) {
    void made.ask({ key: { ...KEY, ...other } });
  }
  assert.equal(made.book.pending().length, 7);
  made.now = 1_000;
  void made.ask();
  assert.equal(made.book.pending().length, 8);
});

test("ApprovalBook: a word for a sandbox holds until the sandbox is gone", async (context) => {
  const { book, ask } = create(context);
  book.learn(KEY, { ...ONCE, scope: { kind: "sandbox" } });
  book.keepOnly(new Set(["ci-17"]));
  assert.deepEqual(await ask(), APPROVED);
  book.keepOnly(new Set(["ci-18"]));
  void ask();
  assert.equal(book.pending().length, 1);
  const anybody = { ...KEY, sandbox: undefined };
  book.learn(anybody, { ...ONCE, scope: { kind: "sandbox" } });
  book.keepOnly(new Set());
  assert.deepEqual(await ask({ key: anybody }), APPROVED);
});

test("ApprovalBook: nobody's word in time, and a client that goes away, end the wait", async (context) => {
  const { book, ask } = create(context);
  assert.deepEqual(await ask({ timeoutMs: 20 }), EXPIRED);
  const controller = new AbortController();
  const waiting = ask({ signal: controller.signal });
  controller.abort();
  assert.deepEqual(await waiting, EXPIRED);
  assert.deepEqual(await ask({ signal: controller.signal }), EXPIRED);
  const closed = ask();
  book.close();
  assert.deepEqual([await closed, book.pending()], [EXPIRED, []]);
});

test("ApprovalBook: who does not wait is sent away, is in the list once, and finds the word on coming back", async (context) => {
  const { book, ask } = create(context);
  assert.deepEqual(await ask({ wait: false }), EXPIRED);
  assert.deepEqual(await ask({ wait: false }), EXPIRED);
  const [pending, ...more] = book.pending();
  assert.deepEqual([pending?.waits, more], [false, []]);
  book.resolve(pending?.id ?? "", ONCE);
  assert.deepEqual(await ask({ wait: false }), APPROVED);
  assert.deepEqual(await ask({ wait: false }), EXPIRED);
});

test("ApprovalBook: a sandbox can fill its own share and no other's, and all of them the whole", async (context) => {
  const { book, ask } = create(context);
  for (let index = 0; index < 16; index += 1) void ask();
  assert.deepEqual(await ask(), EXPIRED);
  for (let index = 0; index < 112; index += 1) void ask({ key: { ...KEY, sandbox: `s-${index >> 4}` } });
  assert.equal(book.pending().length, 128);
  assert.deepEqual(await ask({ key: { ...KEY, sandbox: "another" } }), EXPIRED);
});

test("ApprovalBook: words are kept in bounded number, the oldest goes first", async (context) => {
  const { book, ask } = create(context);
  const scope = { kind: "sandbox" } as const;
  for (let index = 0; index <= 1_024; index += 1)
    book.learn({ ...KEY, path: `/${index}` }, { ...ONCE, scope });
  assert.deepEqual(await ask({ key: { ...KEY, path: "/1024" } }), APPROVED);
  void ask({ key: { ...KEY, path: "/0" } });
  assert.equal(book.pending().length, 1);
});

test("ApprovalBook: who enters is told, and once it is over; where a word holds nobody enters", async (context) => {
  const { book, ask } = create(context);
  const entered: PendingApproval[] = [];
  const overs: AbortSignal[] = [];
  const enter = (pending: PendingApproval, over: AbortSignal): void => {
    entered.push(pending);
    overs.push(over);
  };
  const waiting = ask({ entered: enter });
  assert.deepEqual(entered, book.pending());
  assert.equal(overs[0]?.aborted, false);
  book.resolve(entered[0]?.id ?? "", ONCE);
  assert.deepEqual([await waiting, overs[0]?.aborted], [APPROVED, true]);
  book.learn(KEY, { ...ONCE, scope: { kind: "sandbox" } });
  assert.deepEqual(await ask({ entered: enter }), APPROVED);
  assert.equal(entered.length, 1);
});

test("ApprovalBook: a word that is heard here is kept and spread where it holds for longer", async (context) => {
  const spread: string[] = [];
  const book = new ApprovalBook({
    now: () => 0,
    resolved: () => undefined,
    spread: ({ path }, { by }) => void spread.push(`${path} ${by}`),
  });
  context.after(() => book.close());
  const asking: Asking = {
    key: KEY,
    why: undefined,
    timeoutMs: 60_000,
    wait: true,
    signal: new AbortController().signal,
  };
  book.hear("0123456789ab", ONCE);
  for (const [resolution, outcome] of [
    [ONCE, APPROVED],
    [
      { ...ONCE, approve: false, scope: { kind: "sandbox" } },
      { kind: "rejected", by: "ada" },
    ],
    [{ ...ONCE, scope: { kind: "sandbox" } }, APPROVED],
  ] as const) {
    const waiting = book.ask(asking);
    book.hear(book.pending()[0]?.id ?? "", resolution);
    assert.deepEqual(await waiting, outcome);
  }
  assert.deepEqual(spread, ["/x ada"]);
  assert.deepEqual(await book.ask(asking), APPROVED);
});

test("ApprovalBook tells of 60 questions of a sandbox in a minute, though their clients do not stay", async (context) => {
  const made = create(context);
  let entered = 0;
  const askAndLeave = async (sandbox: string): Promise<void> => {
    const leaving = new AbortController();
    const asked = made.ask({
      key: { ...KEY, sandbox },
      signal: leaving.signal,
      entered: () => {
        entered += 1;
      },
    });
    leaving.abort();
    assert.deepEqual(await asked, EXPIRED);
  };
  for (let at = 0; at < 70; at++) await askAndLeave("ci-17");
  assert.equal(entered, 60);
  await askAndLeave("ci-18");
  assert.equal(entered, 61);
  made.now = 60_001;
  await askAndLeave("ci-17");
  assert.equal(entered, 62);
  for (let at = 0; at < 70; at++) await askAndLeave("ci-17");
  made.book.keepOnly(new Set(["ci-18"]));
  await askAndLeave("ci-17");
  assert.equal(entered, 62 + 59 + 1);
});
