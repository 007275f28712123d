import assert from "node:assert/strict";
import { test } from "node:test";
import type { Allowance, Permit } from "../../src/model/decision.ts";
import { asFailure, cutOff, Failure } from "../../src/model/failure.ts";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { ExchangeDraft } from "../../src/record/draft.ts";
import { ask } from "../decide/build.ts";

const DOOR = { listener: "explicit", address: "10.80.0.2" } as const;
const { destination } = ask("https://a.example/x");

test("end writes one record, whatever is said after", () => {
  const { draft, records } = make();
  draft.end();
  draft.end();
  assert.equal(records.length, 1);
});

test("ExchangeDraft denies until it is told otherwise", () => {
  const { draft, record } = make();
  draft.end();
  const written = record();
  assert.ok(Date.now() - written.time < 60_000);
  assert.ok(written.durationMs >= 0);
  assert.deepEqual(
    [written.client, written.listener, written.protocol],
    ["10.80.0.2", "explicit", "http/1.1"],
  );
  assert.deepEqual([written.verdict, written.visibility, written.injected], ["deny", "request", []]);
  const { reason, rule, would, status, failure, host, port, path, method } = written;
  const unknown = [reason, rule, would, status, failure, host, port, path, method];
  assert.deepEqual(unknown, Array.from({ length: 9 }));
});

test("asked names who asks and where, a literal by its text", () => {
  const { draft, record } = make();
  draft.asked({ client: { sandbox: "ci-17", address: "10.80.0.2" }, destination });
  draft.end();
  assert.deepEqual([record().sandbox, record().host, record().port], ["ci-17", "a.example", 443]);
  const other = make();
  other.draft.asked({ client: undefined, destination: ask("http://[::1]:8080/").destination });
  other.draft.end();
  const { sandbox, host, port } = other.record();
  assert.deepEqual([sandbox, host, port], [undefined, "::1", 8080]);
});

test("the record holds the path without its query", () => {
  for (const target of ["/a/b?secret=1", "/a/b?", "/a/b", "/a/b??x"]) {
    const { draft, record } = make();
    draft.target = target;
    draft.end();
    assert.equal(record().path, "/a/b");
  }
});

test("failed tells the recorder of what broke in the gate itself, and of nothing else", () => {
  const { draft, broken } = make();
  const cause = new TypeError("Something inside");
  draft.failed(new Failure("E_CONNECT", "upstream", "Refused", { cause }));
  draft.failed(cutOff());
  assert.deepEqual(broken, []);
  draft.failed(asFailure(cause));
  const own = new Failure("E_INTERNAL", "gate", "A stream does not leave HTTP/2");
  draft.failed(own);
  assert.deepEqual(broken, [cause, own]);
});

test("decided takes down an allowance, and what would have denied", () => {
  const { draft, record } = make();
  draft.decided(allowance());
  draft.end();
  const { verdict, reason, rule, would } = record();
  assert.deepEqual([verdict, reason, rule, would], ["allow", "no-rule-matched", "a-rule", "deny"]);
});

test("a denial after an allowance leaves nothing of it", () => {
  const { draft, record } = make();
  draft.decided(allowance());
  draft.decided({ verdict: "deny", reason: "address-not-public", rule: undefined });
  draft.end();
  const { verdict, reason, rule, would, injected } = record();
  assert.deepEqual(
    [verdict, reason, rule, would, injected],
    ["deny", "address-not-public", undefined, undefined, []],
  );
});

test("a denial after the request left keeps what was on the wire", () => {
  const { draft, record } = make();
  draft.decided(allowance());
  draft.leaves(["Authorization"]);
  draft.refused({ verdict: "deny", reason: "no-rule-matched", rule: undefined });
  draft.end();
  assert.deepEqual([record().verdict, record().injected], ["deny", ["Authorization"]]);
});

test("alsoInjected names a place of the body once, whether the head has left or is about to", () => {
  for (const early of [true, false]) {
    const { draft, record } = make();
    if (early) draft.alsoInjected(":body");
    draft.leaves(["Authorization"]);
    draft.alsoInjected(":body");
    draft.alsoInjected(":body");
    draft.end();
    assert.deepEqual(record().injected, ["Authorization", ":body"]);
  }
});

test("failed takes down the code, and none where the client left", () => {
  const { draft, record } = make();
  draft.failed(new Failure("E_BAD_REQUEST", "client", "The client went away", { status: 499 }));
  draft.end();
  assert.equal(record().failure, undefined);
  const other = make();
  other.draft.failed(new Failure("E_RESOLVE", "upstream", "No such name"));
  other.draft.end();
  assert.equal(other.record().failure, "E_RESOLVE");
});

test("relayed takes down the bytes of both directions", () => {
  const { draft, record } = make();
  draft.relayed({ bytesOut: 3, bytesIn: 7 });
  draft.end();
  assert.deepEqual([record().bytesOut, record().bytesIn], [3, 7]);
});

test("leaves measures the gate's own time, without what it waited for others", (context) => {
  let now = 1_000;
  context.mock.method(performance, "now", () => now);
  const { draft, record } = make();
  now += 50;
  draft.waited(30);
  draft.waited(15);
  draft.leaves();
  now += 100;
  draft.end();
  assert.equal(record().overheadMs, 5);
  assert.equal(record().durationMs, 150);
});

function make() {
  const records: ExchangeRecord[] = [];
  const broken: unknown[] = [];
  const recorder = {
    broke: (cause: unknown) => void broken.push(cause),
    exchange: (record: ExchangeRecord) => void records.push(record),
    upstreamConnected: () => undefined,
    connectionOpened: () => undefined,
    connectionClosed: () => undefined,
    leafCertificate: () => undefined,
  };
  return {
    draft: new ExchangeDraft(recorder, DOOR),
    records,
    broken,
    record(): ExchangeRecord {
      const [record] = records;
      assert.ok(record !== undefined);
      return record;
    },
  };
}

function allowance(): Allowance {
  const permit = { rule: "a-rule" } as Permit;
  return { verdict: "allow", reason: "no-rule-matched", would: "deny", permit };
}
