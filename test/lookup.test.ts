/** One lookup: an answer of our own, one record, and nothing asked of anybody. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import * as packet from "dns-packet";
import { SyntheticNames } from "../src/base/synthetic.ts";
import { type Asker, runLookup } from "../src/lookup.ts";
import { createWorld, type TestWorld } from "./support/world.ts";

const SETTINGS = { network: { allowlist: [{ domain: "a.test" }] } };

interface Made extends TestWorld {
  readonly asker: Asker;
}

function make(context: TestContext, most = 10): Made {
  const made = createWorld(context, SETTINGS);
  const names = new SyntheticNames({ limits: { dns_names: most }, now: () => 0 });
  return { ...made, asker: { client: { sandbox: undefined, address: "10.0.0.2" }, names } };
}

function ask({ asker, world }: Made, type: string, name: string, dnsClass = "IN"): packet.DecodedPacket {
  const question = { type, name, class: dnsClass } as packet.Question;
  const answer = runLookup(packet.encode({ type: "query", id: 1, questions: [question] }), asker, world);
  assert.ok(answer);
  return packet.decode(answer);
}

function dataOf({ answers }: packet.DecodedPacket): readonly unknown[] {
  return (answers ?? []).map((answer) => ("data" in answer ? answer.data : undefined));
}

function codeOf(answer: packet.DecodedPacket): string {
  return (answer as unknown as { rcode: string }).rcode;
}

test("runLookup: names have addresses whatever the policy says, and localhost has its own", (context) => {
  const made = make(context);
  assert.deepEqual(dataOf(ask(made, "A", "a.test")), ["198.18.1.0"]);
  assert.deepEqual(dataOf(ask(made, "AAAA", "other.test")), ["2001:2::c612:101"]);
  assert.deepEqual(dataOf(ask(made, "A", "localhost")), ["127.0.0.1"]);
  assert.deepEqual(dataOf(ask(made, "AAAA", "x.localhost")), ["::1"]);
  assert.deepEqual(dataOf(ask(made, "PTR", "0.1.18.198.in-addr.arpa")), ["a.test"]);
});

test("runLookup: all else is no data, no name, or refused", (context) => {
  const made = make(context);
  for (const [type, name, code] of [
    ["UNKNOWN_65", "a.test", "NOERROR"],
    ["TXT", "a.test", "REFUSED"],
    ["ANY", "a.test", "REFUSED"],
    ["PTR", "9.9.9.9.in-addr.arpa", "REFUSED"],
    ["PTR", "a.test", "REFUSED"],
    ["A", "1.2.3.4", "NXDOMAIN"],
  ] as const) {
    const answer = ask(made, type, name);
    assert.deepEqual([codeOf(answer), dataOf(answer)], [code, []], `${type} ${name}`);
  }
  assert.equal(codeOf(ask(made, "A", "a.test", "CH")), "REFUSED");
});

test("runLookup: where no address is free it fails rather than takes one from another name", (context) => {
  const made = make(context, 1);
  ask(made, "A", "a.test");
  assert.equal(codeOf(ask(made, "A", "b.test")), "SERVFAIL");
  assert.deepEqual(dataOf(ask(made, "A", "a.test")), ["198.18.1.0"]);
});

test("runLookup: one record each, with the verdict that a connection would have", (context) => {
  const made = make(context);
  for (const [type, name] of [
    ["A", "a.test"],
    ["TXT", "other.test"],
    ["HINFO", "other.test"],
    ["A", "1.2.3.4"],
  ] as const) {
    ask(made, type, name);
  }
  assert.deepEqual(
    made.records.map(({ listener, protocol, method, host, port, verdict, reason }) =>
      [listener, protocol, method, host, port, verdict, reason].join(" "),
    ),
    [
      "dns dns A a.test  allow rule-allows",
      "dns dns TXT other.test  deny no-rule-matched",
      "dns dns TYPE13 other.test  deny no-rule-matched",
      "dns dns A   deny no-name",
    ],
  );
});

test("runLookup: what is no query has no record, and an answer at most", (context) => {
  const made = make(context);
  assert.equal(runLookup(Buffer.alloc(3), made.asker, made.world), undefined);
  assert.equal(runLookup(Buffer.alloc(12), made.asker, made.world)?.readUInt16BE(2), 0x8081);
  assert.deepEqual(made.records, []);
});
