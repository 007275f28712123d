import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Appender } from "../../src/base/appender.ts";

test("Appender gives all that came, and changes nothing that it gave before", () => {
  const piece = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.array(fc.tuple(piece, fc.nat(60))), (steps) => {
      const appender = new Appender();
      let held: Buffer = Buffer.alloc(0);
      let expected: Buffer = held;
      const given: (readonly [Buffer, string])[] = [];
      for (const [bytes, taken] of steps) {
        held = appender.append(held, bytes);
        expected = Buffer.concat([expected, bytes]);
        assert.deepEqual(held, expected);
        given.push([held, held.toString("hex")]);
        held = held.subarray(taken);
        expected = expected.subarray(taken);
      }
      for (const [bytes, text] of given) assert.equal(bytes.toString("hex"), text);
    }),
    { numRuns: 500 },
  );
});

test("Appender copies what it did not give, and what it gave on already", () => {
  const appender = new Appender();
  const first = appender.append(Buffer.from("ab"), Buffer.from("c"));
  assert.equal(appender.append(first, Buffer.from("d")).toString(), "abcd");
  assert.equal(appender.append(first, Buffer.from("x")).toString(), "abcx");
  assert.equal(appender.append(Buffer.from("z"), Buffer.from("y")).toString(), "zy");
  assert.equal(first.toString(), "abc");
});

test("Appender keeps no room once it is told to forget it: what it gave is copied like anything else", () => {
  const appender = new Appender();
  const held = appender.append(Buffer.from("ab"), Buffer.from("c"));
  assert.equal(appender.append(held, Buffer.from("d")).byteOffset, held.byteOffset);
  const again = appender.append(Buffer.from("ab"), Buffer.from("c"));
  appender.forget();
  const moved = appender.append(again, Buffer.from("d"));
  assert.equal(moved.toString(), "abcd");
  assert.notEqual(moved.byteOffset, again.byteOffset);
});

test("Appender takes a million bytes one by one in a moment", () => {
  const appender = new Appender();
  const one = Buffer.from("a");
  let held: Buffer = one;
  const before = process.cpuUsage();
  for (let at = 1; at < 1_000_000; at++) held = appender.append(held, one);
  assert.equal(held.length, 1_000_000);
  assert.ok(process.cpuUsage(before).user < 3_000_000);
});
