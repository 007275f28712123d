import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bitString,
  bmpString,
  boolean,
  childrenOf,
  decodeDer,
  encodeDer,
  explicit,
  implicit,
  integer,
  isObject,
  octetString,
  octetsOf,
  oid,
  sequence,
  set,
  smallInteger,
  time,
  utf8String,
} from "../../src/pki/der.ts";

test("encodeDer writes each type as X.690 has it", () => {
  const cases = [
    [sequence(smallInteger(2), boolean(true)), "3006020102" + "0101ff"],
    [boolean(false), "010100"],
    [set(utf8String("é")), "31040c02c3a9"],
    [bmpString("aé"), "1e04006100e9"],
    [oid("1.2.840.10045.4.3.2"), "06082a8648ce3d040302"],
    [integer(Buffer.from("40ff", "hex")), "020240ff"],
    [octetString(Buffer.from("00ff", "hex")), "040200ff"],
    [bitString(Uint8Array.of(0x80), 7), "03020780"],
    [explicit(3, smallInteger(1)), "a303020101"],
    [implicit(2, Buffer.from("a.example")), "8209612e6578616d706c65"],
  ] as const;
  for (const [value, hex] of cases) assert.equal(encodeDer(value).toString("hex"), hex);
});

test("time changes its type with the year 2050", () => {
  const ascii = (date: string) => encodeDer(time(new Date(date))).toString("latin1");
  assert.equal(ascii("2049-12-31T23:59:59Z"), "\x17\x0d491231235959Z");
  assert.equal(ascii("2050-01-01T00:00:00Z"), "\x18\x0f20500101000000Z");
});

test("decodeDer leaves bit strings alone, even where their bits look like DER", () => {
  // 04 3f: an uncompressed point whose first octet happens to be the right length for an OCTET STRING.
  const point = Buffer.concat([Buffer.from("043f", "hex"), Buffer.alloc(63, 7)]);
  const decoded = decodeDer(encodeDer(bitString(point)));
  assert.deepEqual(octetsOf(decoded).subarray(1), point);
  assert.deepEqual(childrenOf(decoded), []);
});

test("decodeDer throws on less or more than one value", () => {
  for (const hex of ["", "30", "3003020101ff", "020101020101", "3080020101"]) {
    assert.throws(() => decodeDer(Buffer.from(hex, "hex")), hex);
  }
});

test("childrenOf and octetsOf take a value apart, and isObject compares it", () => {
  const value = decodeDer(encodeDer(sequence(oid("2.5.29.14"), octetString(Uint8Array.of(1, 2)))));
  const [id, octets] = childrenOf(value);
  assert.ok(id !== undefined && octets !== undefined);
  assert.equal(isObject(id, "2.5.29.14"), true);
  assert.equal(isObject(id, "2.5.29.15"), false);
  assert.equal(isObject(octets, "2.5.29.14"), false);
  assert.equal(isObject(undefined, "2.5.29.14"), false);
  assert.deepEqual(octetsOf(octets), Buffer.of(1, 2));
  assert.deepEqual(octetsOf(value), Buffer.alloc(0));
});
