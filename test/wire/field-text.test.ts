import assert from "node:assert/strict";
import { test } from "node:test";
import type { Framing } from "../../src/model/exchange.ts";
import { parseFieldLines } from "../../src/wire/field-lines.ts";
import {
  hasUpgrade,
  isSafeValue,
  isToken,
  renderFieldLines,
  renderFramedFields,
  unwritable,
} from "../../src/wire/field-text.ts";
import { CHUNKED, CLOSE, NONE } from "../../src/wire/framing.ts";
import { failure, field } from "./support.ts";

function framed(framing: Framing, keepsLength: boolean, ...pairs: (readonly [string, string])[]): string {
  return renderFramedFields(
    pairs.map(([name, value]) => field(name, value)),
    framing,
    keepsLength,
  );
}

test("F12 renderFieldLines() keeps order, case and repetition", () => {
  const fields = [field("Set-Cookie", "a"), field("X-y", ""), field("set-cookie", "caf\xe9")];
  assert.equal(renderFieldLines(fields), "Set-Cookie: a\r\nX-y: \r\nset-cookie: caf\xe9\r\n");
});

test("renderFieldLines() writes what was read off the wire as it was read", () => {
  const text = "Set-Cookie: a\r\nX-y: \r\nset-cookie: caf\xe9\r\n";
  assert.equal(renderFieldLines(parseFieldLines(`${text}\r\n`, 0, 100, "upstream")), text);
});

test("renderFieldLines() writes nothing that could end a line or a head", () => {
  const bad = [
    field("X", "a\r\nY: b"),
    field("X", "a\r"),
    field("X", "a\n"),
    field("X", "a\0"),
    field("X", "\x1b[2J"),
    field("X", "a\x7f"),
    field("X", "a\u010a"),
    field("X", "\u{1f600}"),
    field("X\r\nY", "a"),
    field("X: y", "a"),
    field("X ", "a"),
    field("", "a"),
    field("X\xe9", "a"),
  ];
  for (const each of bad) {
    assert.throws(() => renderFieldLines([each]), failure("E_INTERNAL"));
    assert.throws(() => renderFramedFields([each], NONE, false), failure("E_INTERNAL"));
  }
});

test("renderFieldLines() writes no field whose key names another", () => {
  const disguised = { name: "Transfer-Encoding", key: "x", value: "chunked" };
  assert.throws(() => renderFieldLines([disguised]), failure("E_INTERNAL"));
});

test("F01 F03 renderFramedFields() leaves out what is about another hop", () => {
  const text = framed(
    NONE,
    false,
    ["Connection", "x"],
    ["Keep-Alive", "a"],
    ["Proxy-Connection", "a"],
    ["TE", "trailers"],
    ["Transfer-Encoding", "gzip"],
    ["Content-Length", "5"],
    ["X", "a"],
  );
  assert.equal(text, "X: a\r\n");
});

test("renderFramedFields() leaves a right Content-Length in its place, once", () => {
  const length = { kind: "length", length: 5 } as const;
  assert.equal(framed(length, false, ["content-length", "5"], ["X", "a"]), "content-length: 5\r\nX: a\r\n");
  assert.equal(
    framed(length, false, ["Content-Length", "5"], ["Content-Length", "5"]),
    "Content-Length: 5\r\n",
  );
});

test("renderFramedFields() replaces a wrong Content-Length and adds a missing one", () => {
  const length = { kind: "length", length: 5 } as const;
  for (const wrong of ["6", "005", "5, 5", "+5", ""]) {
    assert.equal(
      framed(length, false, ["Content-Length", wrong], ["X", "a"]),
      "X: a\r\nContent-Length: 5\r\n",
    );
  }
  assert.equal(framed(length, false), "Content-Length: 5\r\n");
});

test("renderFramedFields() writes chunked once, and no length beside it or without one", () => {
  const given = [
    ["Content-Length", "5"],
    ["transfer-encoding", "chunked"],
  ] as const;
  assert.equal(framed(CHUNKED, false, ...given), "Transfer-Encoding: chunked\r\n");
  assert.equal(framed(CLOSE, false, ...given), "");
  assert.equal(framed(NONE, false, ...given), "");
});

test("renderFramedFields() keeps a readable length that tells of a body not sent", () => {
  assert.equal(framed(NONE, true, ["Content-Length", "5"]), "Content-Length: 5\r\n");
  assert.equal(
    framed(NONE, true, ["Content-Length", "-5"], ["Content-Length", "6"]),
    "Content-Length: 6\r\n",
  );
});

test("renderFramedFields() refuses a length that is none", () => {
  for (const length of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    assert.throws(() => framed({ kind: "length", length }, false), failure("E_INTERNAL"));
  }
});

test("isToken(), isSafeValue(), hasUpgrade() and unwritable() say what they are named for", () => {
  assert.deepEqual([isToken("a-b"), isToken(""), isToken("a b")], [true, false, false]);
  assert.deepEqual([isSafeValue(""), isSafeValue("\t \xff"), isSafeValue("\u0100")], [true, true, false]);
  assert.deepEqual([hasUpgrade([field("Upgrade", "a")]), hasUpgrade([field("X", "a")])], [true, false]);
  const { code, fault } = unwritable("Message");
  assert.deepEqual([code, fault], ["E_INTERNAL", "gate"]);
});
