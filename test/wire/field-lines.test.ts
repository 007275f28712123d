import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field } from "../../src/model/exchange.ts";
import { listElements, parseFieldLines } from "../../src/wire/field-lines.ts";
import { failure } from "./support.ts";

const MALFORMED: readonly (readonly [string, string])[] = [
  ["E07 obs-fold by SP", "X: 1\r\n Authorization: a\r\n\r\n"],
  ["E07 obs-fold by HTAB", "X: 1\r\n\tAuthorization: a\r\n\r\n"],
  ["E07 fold before any field", " X: 1\r\n\r\n"],
  ["E19 NUL in a value", "X: a\0b\r\n\r\n"],
  ["E19 DEL in a value", "X: a\x7fb\r\n\r\n"],
  ["E19 VT before a value", "X:\x0bchunked\r\n\r\n"],
  ["E19 escape in a value", "X: \x1b[2J\r\n\r\n"],
  ["E19 empty name", ": a\r\n\r\n"],
  ["E19 name with a blank", "X Y: a\r\n\r\n"],
  ["E19 blank before the colon", "X : a\r\n\r\n"],
  ["E19 tab before the colon", "X\t: a\r\n\r\n"],
  ["E19 name with (", "X(: a\r\n\r\n"],
  ["E19 name with a high byte", "X\xe9: a\r\n\r\n"],
  ["E19 name with NUL", "X\0: a\r\n\r\n"],
  ["no colon", "X\r\n\r\n"],
  ["bare LF between fields", "X: a\nY: b\r\n\r\n"],
  ["bare CR in a value", "X: a\rY: b\r\n\r\n"],
  ["bare CR before the end", "X: a\r\r\n\r\n"],
  ["bare LF at the end", "X: a\r\n\n"],
  ["no empty line", "X: a\r\n"],
  ["cut inside a line", "X: a"],
  ["bytes after the empty line", "X: a\r\n\r\nY: b\r\n\r\n"],
  ["nothing", ""],
];

for (const [name, text] of MALFORMED) {
  test(`parseFieldLines() refuses: ${name}`, () => {
    assert.throws(() => parseFieldLines(text, 0, 100, "client"), failure("E_BAD_REQUEST", 400));
    assert.throws(() => parseFieldLines(text, 0, 100, "upstream"), failure("E_UPSTREAM_PROTOCOL"));
  });
}

test("F12 parseFieldLines() keeps order, case and repetition", () => {
  const fields = parseFieldLines("Set-Cookie: a\r\nX-y: 1\r\nset-cookie: b\r\n\r\n", 0, 100, "client");
  assert.deepEqual(plain(fields), [
    { name: "Set-Cookie", key: "set-cookie", value: "a" },
    { name: "X-y", key: "x-y", value: "1" },
    { name: "set-cookie", key: "set-cookie", value: "b" },
  ]);
});

test("parseFieldLines() cuts SP and HTAB around a value and nothing else", () => {
  const values = ["", " ", " \t ", " a", "\ta\t", " a b ", "\xa0a\xa0", "a:b", "\xff\x80"];
  const text = `${values.map((value) => `X:${value}\r\n`).join("")}\r\n`;
  assert.deepEqual(
    parseFieldLines(text, 0, 100, "client").map((line) => line.value),
    ["", "", "", "a", "a", "a b", "\xa0a\xa0", "a:b", "\xff\x80"],
  );
});

test("parseFieldLines() takes names of an object's own for ordinary names", () => {
  const fields = parseFieldLines("__proto__: a\r\nconstructor: b\r\n\r\n", 0, 100, "client");
  assert.deepEqual(
    fields.map(({ key, value }) => [key, value]),
    [
      ["__proto__", "a"],
      ["constructor", "b"],
    ],
  );
});

test("parseFieldLines() takes an empty section, and starts where it is told", () => {
  assert.deepEqual(parseFieldLines("\r\n", 0, 0, "client"), []);
  assert.deepEqual(parseFieldLines("junk\r\n", 4, 0, "client"), []);
});

test("E13 parseFieldLines() refuses more fields than allowed", () => {
  const text = `${"X: a\r\n".repeat(3)}\r\n`;
  assert.equal(parseFieldLines(text, 0, 3, "client").length, 3);
  assert.throws(() => parseFieldLines(text, 0, 2, "client"), failure("E_BAD_REQUEST", 431));
  assert.throws(() => parseFieldLines(text, 0, 2, "upstream"), failure("E_UPSTREAM_PROTOCOL"));
});

test("parseFieldLines() reads a megabyte of one field, or refuses it, without trouble", () => {
  const long = "a".repeat(1_048_576);
  assert.equal(parseFieldLines(`X: ${long}\r\n\r\n`, 0, 1, "client")[0]?.value, long);
  assert.throws(() => parseFieldLines(`X: ${long}\n\r\n\r\n`, 0, 1, "client"), failure("E_BAD_REQUEST", 400));
});

test("listElements() lowers case and drops blanks and empty elements", () => {
  assert.deepEqual(listElements(" Close,\t, keep-alive ,,X-Foo"), ["close", "keep-alive", "x-foo"]);
  assert.deepEqual(listElements(""), []);
});

/** Fields as literals write them. */
function plain(fields: readonly Field[]): readonly Field[] {
  return fields.map(({ name, key, value }) => ({ name, key, value }));
}
