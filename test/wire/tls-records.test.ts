import assert from "node:assert/strict";
import { test } from "node:test";
import { readHandshake } from "../../src/wire/tls-records.ts";
import { handshake, record, records, uint16 } from "./hello-support.ts";
import { failure } from "./support.ts";

const MOST = 65_536;

test("readHandshake() puts a message together from one record or many", () => {
  const body = Buffer.from("hello, world");
  for (const size of [1, 3, 4, 5, 100]) {
    const bytes = records(handshake(1, body), size);
    assert.deepEqual(readHandshake(bytes, MOST), { kind: "message", type: 1, body });
  }
});

test("D26 readHandshake() leaves what follows the message's last record alone", () => {
  const body = Buffer.from("hello");
  const bytes = Buffer.concat([records(handshake(1, body), 4), record(23, Buffer.from("early data"))]);
  assert.deepEqual(readHandshake(bytes, MOST), { kind: "message", type: 1, body });
});

test("readHandshake() believes a message only with the whole of its last record", () => {
  const bytes = record(22, Buffer.concat([handshake(1, Buffer.alloc(10)), Buffer.alloc(1)]));
  assert.equal(readHandshake(bytes.subarray(0, -1), MOST).kind, "incomplete");
  assert.throws(() => readHandshake(bytes, MOST), failure("E_BAD_HELLO"));
});

test("D22 readHandshake() refuses what is TLS and not a handshake message", () => {
  const good = handshake(1, Buffer.alloc(10));
  const bad: readonly (readonly [string, Buffer])[] = [
    ["alert first", record(21, Buffer.from([2, 40]))],
    ["change cipher spec first", record(20, Buffer.from([1]))],
    ["application data first", record(23, Buffer.from("x"))],
    ["heartbeat first", record(24, Buffer.from("x"))],
    ["alert in between", Buffer.concat([record(22, good.subarray(0, 5)), record(21, Buffer.from([2, 40]))])],
    ["garbage after the first bytes", Buffer.concat([Buffer.from([22, 3, 1]), Buffer.alloc(20, 0xff)])],
    ["empty record", Buffer.concat([record(22, Buffer.alloc(0)), record(22, good)])],
    ["record too long", Buffer.concat([Buffer.from([22, 3, 1]), uint16(16_385)])],
    [
      "other version in a later record",
      Buffer.concat([record(22, good.subarray(0, 5)), record(22, good.subarray(5), 0x0201)]),
    ],
    ["two messages in one record", record(22, Buffer.concat([good, good]))],
    ["a byte too many in the record", record(22, Buffer.concat([good, Buffer.alloc(1)]))],
  ];
  for (const [name, bytes] of bad) {
    assert.throws(() => readHandshake(bytes, MOST), failure("E_BAD_HELLO"), name);
  }
});

test("readHandshake() refuses a message beyond its cap as soon as it says so", () => {
  const first = record(22, Buffer.from([1, 1, 0, 0]));
  assert.throws(() => readHandshake(first, MOST), failure("E_BAD_HELLO"));
  assert.equal(readHandshake(record(22, Buffer.from([1, 0, 255, 252])), MOST).kind, "incomplete");
  assert.throws(() => readHandshake(record(22, Buffer.from([1, 0, 255, 253])), MOST), failure("E_BAD_HELLO"));
});

test("readHandshake() caps the records too, not only what is in them", () => {
  const message = handshake(1, Buffer.alloc(5_000));
  const single = records(message, 1);
  assert.equal(readHandshake(single.subarray(0, 4_096 * 6), MOST).kind, "incomplete");
  assert.throws(() => readHandshake(single.subarray(0, 4_096 * 6 + 5), MOST), failure("E_BAD_HELLO"));
  assert.equal(readHandshake(records(message, 2), MOST).kind, "message");
  assert.throws(() => readHandshake(records(message, 100).subarray(0, 5_050), 5_010), failure("E_BAD_HELLO"));
});

test("readHandshake() tells other protocols by one byte or two", () => {
  assert.equal(readHandshake(Buffer.alloc(0), MOST).kind, "incomplete");
  assert.equal(readHandshake(Buffer.from([22]), MOST).kind, "incomplete");
  assert.equal(readHandshake(Buffer.from([22, 3]), MOST).kind, "incomplete");
  assert.equal(readHandshake(Buffer.from([22, 2]), MOST).kind, "not-tls");
  assert.equal(readHandshake(Buffer.from("G"), MOST).kind, "not-tls");
  assert.equal(readHandshake(Buffer.from([25]), MOST).kind, "not-tls");
});
