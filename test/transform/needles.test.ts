import assert from "node:assert/strict";
import { test } from "node:test";
import { compileNeedles } from "../../src/transform/needles.ts";

function found(needles: readonly string[], text: string): readonly string[] {
  const places: string[] = [];
  const compiled = compileNeedles(needles.map((needle) => Buffer.from(needle)));
  compiled?.each(Buffer.from(text), (start, end) => places.push(`${start}-${end}`));
  return places;
}

test("compileNeedles leaves out what is shorter than eight bytes, and gives nothing where nothing is left", () => {
  assert.equal(compileNeedles([]), undefined);
  assert.equal(compileNeedles([Buffer.from("1234567")]), undefined);
  assert.deepEqual(found(["1234567", "abcdefgh"], "1234567abcdefgh"), ["7-15"]);
});

test("Needles.each tells of every place, overlapping ones too, and the longest at each", () => {
  assert.deepEqual(found(["aaaaaaaa"], "aaaaaaaaa"), ["0-8", "1-9"]);
  assert.deepEqual(found(["abcdefgh", "abcdefghij"], "xabcdefghijabcdefghix"), ["1-11", "11-19"]);
  assert.deepEqual(found(["abcdefgh"], "abcdefg"), []);
  assert.deepEqual(found(["abcdefgh"], "Xbcdefgh abcdefgX"), []);
});

test("Needles.unfinished tells where a needle begins that the end cuts", () => {
  const needles = compileNeedles([Buffer.from("abcdefgh"), Buffer.from("bcdefghi")]);
  const at = (text: string) => needles?.unfinished(Buffer.from(text));
  assert.equal(at(""), 0);
  assert.equal(at("xyz"), 3);
  assert.equal(at("xa"), 1);
  assert.equal(at("xxxxxxxxxxabcd"), 10);
  assert.equal(at("abcdefgh"), 1, "the other one may go on");
  assert.equal(at("abcx"), 4);
});

test("Needles.leading and trailing tell what the ends of a part hold of a needle", () => {
  const needles = compileNeedles([Buffer.from("abcdefgh"), Buffer.from("0123456789abcdef".repeat(3))]);
  assert.ok(needles);
  const leading = (text: string) => needles.leading(Buffer.from(text));
  const trailing = (text: string) => needles.trailing(Buffer.from(text));
  assert.deepEqual(["fgh!", "gh!", "xfgh", "defx", "", "cde"].map(leading), [3, 0, 0, 0, 0, 3]);
  assert.deepEqual(["89abcdef", "9abcdef", "f0123456789"].map(leading), [8, 0, 11]);
  assert.deepEqual(["!abc", "!ab", "abcx", "", "abc abcde"].map(trailing), [1, 3, 4, 0, 4]);
  assert.deepEqual(["x01234567", "x0123456"].map(trailing), [1, 8]);
  assert.equal(needles.longest, 48);
});
