/** Pairs of an HTTP/2 frame and field lines, both ways. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import {
  headerListLines,
  headerListSize,
  pushFields,
  readPairs,
  readTrailers,
  trailersOf,
} from "../../src/wire/h2-fields.ts";

const LIMITS = { ...DEFAULT_LIMITS, head_fields: 20, head_bytes: 2_000, trailer_bytes: 100 };

function line(key: string, value: string, name = key) {
  return { name, key, value };
}

test("readPairs takes pseudo fields and field lines apart, in order", () => {
  const { pseudo, fields } = readPairs(
    [":a", "1", "x", "2", "y", "é", "x", "3", "te", "Trailers"],
    LIMITS,
    "client",
  );
  assert.deepEqual([...pseudo], [[":a", "1"]]);
  assert.deepEqual(fields, [line("x", "2"), line("y", "é"), line("x", "3"), line("te", "Trailers")]);
});

for (const [what, pairs] of [
  ["a pseudo field that comes twice", [":a", "1", ":a", "1"]],
  ["a pseudo field after others", ["x", "1", ":a", "1"]],
  ["a name in upper case", ["X", "1"]],
  ["a name that is no token", ["x y", "1"]],
  ["a value with a line end", ["x", "1\r\ny: 2"]],
  ["a value beyond latin1", ["x", "\u010a"]],
  ["Connection", ["connection", "close"]],
  ["Transfer-Encoding", ["transfer-encoding", "chunked"]],
  ["Upgrade", ["upgrade", "h2c"]],
  ["Keep-Alive", ["keep-alive", "1"]],
  ["Proxy-Connection", ["proxy-connection", "close"]],
  ["TE with a coding", ["te", "gzip"]],
] as const) {
  test(`readPairs refuses ${what}, whosever it is (H09)`, () => {
    assert.throws(() => readPairs(pairs, LIMITS, "client"), { code: "E_BAD_REQUEST", status: 400 });
    assert.throws(() => readPairs(pairs, LIMITS, "upstream"), { code: "E_UPSTREAM_PROTOCOL" });
  });
}

test("readPairs counts fields and bytes", () => {
  const fields = (count: number) => Array.from({ length: count }, () => ["x", "v"]).flat();
  assert.equal(readPairs(fields(20), LIMITS, "client").fields.length, 20);
  assert.throws(() => readPairs(fields(21), LIMITS, "client"), { status: 431 });
  assert.equal(readPairs(["x", "v".repeat(1_999)], LIMITS, "client").fields.length, 1);
  assert.throws(() => readPairs(["x", "v".repeat(2_000)], LIMITS, "client"), { status: 431 });
});

test("readTrailers knows no pseudo fields, and its own size", () => {
  assert.deepEqual(readTrailers(["x", "1"], LIMITS, "client"), [line("x", "1")]);
  assert.throws(() => readTrailers([":status", "200"], LIMITS, "upstream"), { code: "E_UPSTREAM_PROTOCOL" });
  assert.throws(() => readTrailers(["x", "v".repeat(100)], LIMITS, "client"), { status: 431 });
});

test("headerListLines is more than a list of the announced size can hold", () => {
  assert.ok(headerListLines(LIMITS) * (32 + 1) > headerListSize(LIMITS));
  assert.ok((headerListLines(LIMITS) - 1) * (32 + 1) <= headerListSize(LIMITS));
});

test("headerListSize leaves room for every head within the limits", () => {
  assert.equal(headerListSize(LIMITS), 2_000 + 20 * 32);
});

test("pushFields leaves out Host and what concerns one hop, and writes the length that the framing asks for", () => {
  const fields = [
    line("host", "a"),
    line("x", "1", "X"),
    line("content-length", "9"),
    line("connection", "close"),
    line("upgrade", "websocket"),
    line("y", "2"),
  ];
  const written = (length: string | undefined, from = fields) => {
    const pairs: string[] = [];
    pushFields(pairs, from, length);
    return pairs;
  };
  assert.deepEqual(written(undefined), ["x", "1", "y", "2"]);
  assert.deepEqual(written("7"), ["x", "1", "content-length", "7", "y", "2"]);
  assert.deepEqual(written("7", [line("content-length", "9"), line("content-length", "9")]), [
    "content-length",
    "7",
  ]);
  assert.deepEqual(written("7", [line("x", "1")]), ["x", "1", "content-length", "7"]);
});

for (const [what, field] of [
  ["a name that is no token", line("x y", "1")],
  ["a value with a line end", line("x", "1\n2")],
  ["a key that is not the name's", line("x", "1", "Y")],
] as const) {
  test(`pushFields and trailersOf write no field with ${what}`, () => {
    assert.throws(() => pushFields([], [field], undefined), { code: "E_INTERNAL" });
    assert.throws(() => trailersOf([field]), { code: "E_INTERNAL" });
  });
}

test("trailersOf gathers what may stand there", () => {
  const fields = [
    line("x", "1"),
    line("y", "a"),
    line("x", "2"),
    line("x", "3"),
    line("content-length", "1"),
    line("authorization", "s"),
    line("keep-alive", "1"),
  ];
  assert.deepEqual({ ...trailersOf(fields) }, { x: ["1", "2", "3"], y: "a" });
  assert.deepEqual(Object.entries(trailersOf([line("__proto__", "1")])), [["__proto__", "1"]]);
});

test("readPairs reads what pushFields writes", () => {
  const name = fc
    .stringMatching(/^[a-z][a-z0-9-]{0,10}$/)
    .filter(
      (text) =>
        !/^(host|content-length|te|connection|upgrade|keep-alive|proxy-connection|transfer-encoding)$/.test(
          text,
        ),
    );
  const field = fc.tuple(name, fc.stringMatching(/^[!-~]{0,20}$/)).map(([key, value]) => line(key, value));
  fc.assert(
    fc.property(fc.array(field, { maxLength: 20 }), (fields) => {
      const pairs: string[] = [];
      pushFields(pairs, fields, undefined);
      assert.deepEqual(readPairs(pairs, LIMITS, "client").fields, fields);
    }),
  );
});
