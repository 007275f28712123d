/** DNS messages: strict queries in, short answers out, compared with an independent codec. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as packet from "dns-packet";
import {
  DNS_TYPE,
  type DnsQuery,
  encodeDnsName,
  readDnsQuery,
  renderDnsAnswer,
} from "../../src/wire/dns-message.ts";

const PLAIN = packet.encode({
  type: "query",
  id: 0xabcd,
  flags: packet.RECURSION_DESIRED,
  questions: [{ type: "A", name: "Www.Example.COM" }],
});
const OPT = Buffer.from([0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]);

/** A query with some bytes changed. */
function changed(at: number, ...bytes: readonly number[]): Buffer {
  const copy = Buffer.from(PLAIN);
  copy.set(bytes, at);
  return copy;
}

function withOpt(opt: Buffer, count = 1): Buffer {
  return Buffer.concat([changed(10, 0, count), opt]);
}

function queryOf(bytes: Buffer): DnsQuery {
  const read = readDnsQuery(bytes);
  assert.ok(read.kind === "query");
  return read.query;
}

function codeOf(bytes: Buffer): number {
  const read = readDnsQuery(bytes);
  assert.ok(read.kind === "answer");
  assert.deepEqual(read.bytes.subarray(0, 2), bytes.subarray(0, 2));
  assert.equal(read.bytes.readUInt16BE(2) & 0x8000, 0x8000);
  const extended = read.bytes.length > 12 && read.bytes[11] === 1 ? (read.bytes.at(-6) ?? 0) << 4 : 0;
  return (read.bytes.readUInt16BE(2) & 0xf) | extended;
}

describe("readDnsQuery", () => {
  test("a query gives its name as received, type, class and flags", () => {
    const { question, ...rest } = queryOf(PLAIN);
    assert.deepEqual(rest, {
      id: 0xabcd,
      name: "Www.Example.COM",
      type: 1,
      dnsClass: 1,
      flags: 0x100,
      edns: false,
    });
    assert.deepEqual(question, PLAIN.subarray(12));
  });

  test("the root is a dot, and a label that is no text gives no name", () => {
    assert.equal(queryOf(Buffer.concat([PLAIN.subarray(0, 12), Buffer.from([0, 0, 1, 0, 1])])).name, ".");
    for (const odd of [0x00, 0x20, 0x2e, 0x7f, 0xff]) assert.equal(queryOf(changed(14, odd)).name, undefined);
  });

  test("EDNS is seen, with options or without, and a later version is told so", () => {
    assert.equal(queryOf(withOpt(OPT)).edns, true);
    const cookie = Buffer.from([0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert.equal(queryOf(withOpt(cookie)).edns, true);
    const later = Buffer.from(OPT);
    later[6] = 1;
    assert.equal(codeOf(withOpt(later)), 16);
  });

  test("what has no id, or is an answer, is dropped", () => {
    assert.equal(readDnsQuery(PLAIN.subarray(0, 11)).kind, "drop");
    assert.equal(readDnsQuery(Buffer.alloc(0)).kind, "drop");
    assert.equal(readDnsQuery(changed(2, 0x81)).kind, "drop");
  });
});

describe("readDnsQuery: malformed is", () => {
  const long = Buffer.concat([
    PLAIN.subarray(0, 12),
    ...Array.from({ length: 5 }, () => Buffer.alloc(64, 63)),
    Buffer.alloc(5),
  ]);
  const cases: readonly (readonly [string, Buffer])[] = [
    ["no question", changed(5, 0)],
    ["two questions", changed(5, 2)],
    ["an answer in it", changed(7, 1)],
    ["an authority in it", changed(9, 1)],
    ["two additional records", withOpt(Buffer.concat([OPT, OPT]), 2)],
    ["a mark of being cut", changed(2, 0x03)],
    ["a byte more", Buffer.concat([PLAIN, Buffer.alloc(1)])],
    ["a byte less", PLAIN.subarray(0, -1)],
    ["a name without end", PLAIN.subarray(0, 20)],
    ["a pointer", changed(12, 0xc0, 0x0c)],
    ["a label type of another kind", changed(12, 0x41)],
    ["a name of more than 255 bytes", long],
    ["an additional record that is missing", changed(11, 1)],
    ["an additional record that is not OPT", withOpt(Buffer.from([0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 0]))],
    ["an OPT that has a name", withOpt(Buffer.from([1, 0x61, 0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0]))],
    ["an OPT of another length than it says", withOpt(Buffer.from([...OPT.subarray(0, 10), 1]))],
    ["an option without a length", withOpt(Buffer.from([...OPT.subarray(0, 10), 2, 0, 10]))],
    ["an option that is cut", withOpt(Buffer.from([...OPT.subarray(0, 10), 5, 0, 10, 0, 8, 1]))],
  ];
  for (const [what, bytes] of cases) test(what, () => assert.equal(codeOf(bytes), 1));

  test("not another operation, which is not built", () => {
    assert.equal(codeOf(changed(2, 0x29)), 4);
  });
});

describe("renderDnsAnswer", () => {
  test("another codec reads what was meant, in the letters that were asked with", () => {
    const query = queryOf(withOpt(OPT));
    const bytes = renderDnsAnswer(query, { code: 0, data: [Buffer.from([198, 18, 1, 2])], ttl: 60 });
    const read = packet.decode(bytes);
    assert.deepEqual(read.answers, [
      { name: "Www.Example.COM", type: "A", ttl: 60, class: "IN", flush: false, data: "198.18.1.2" },
    ]);
    assert.deepEqual([read.id, read.flag_qr, read.flag_rd, read.flag_ra], [0xabcd, true, true, true]);
    assert.equal(read.additionals?.[0]?.type, "OPT");
    assert.equal(read.questions?.[0]?.name, "Www.Example.COM");
  });

  test("a pointer's data is a name, and without EDNS there is no OPT", () => {
    const name = "2.1.18.198.in-addr.arpa";
    const query = queryOf(packet.encode({ type: "query", id: 1, questions: [{ type: "PTR", name }] }));
    assert.equal(query.type, DNS_TYPE.PTR);
    const bytes = renderDnsAnswer(query, { code: 0, data: [encodeDnsName("a.example")], ttl: 1 });
    const read = packet.decode(bytes);
    assert.deepEqual(
      read.answers?.map((answer) => ("data" in answer ? answer.data : undefined)),
      ["a.example"],
    );
    assert.deepEqual(read.additionals, []);
  });
});
