import assert from "node:assert/strict";
import { test } from "node:test";
import { closesAfter, declaredFraming, readControl } from "../../src/wire/framing.ts";
import { failure, field } from "./support.ts";

type Pair = readonly [string, string];

function control(...pairs: Pair[]) {
  return readControl(pairs.map(([name, value]) => field(name, value)));
}

const REFUSED: readonly (readonly [string, number, 0 | 1, readonly Pair[]])[] = [
  [
    "E01 CL and TE",
    400,
    1,
    [
      ["Content-Length", "5"],
      ["Transfer-Encoding", "chunked"],
    ],
  ],
  [
    "E01 TE and CL",
    400,
    1,
    [
      ["Transfer-Encoding", "chunked"],
      ["content-length", "0"],
    ],
  ],
  [
    "E01 TE identity and CL",
    400,
    1,
    [
      ["Transfer-Encoding", "identity"],
      ["Content-Length", "5"],
    ],
  ],
  [
    "E04 two different lengths",
    400,
    1,
    [
      ["Content-Length", "5"],
      ["Content-Length", "6"],
    ],
  ],
  [
    "E04 two equal lengths",
    400,
    1,
    [
      ["Content-Length", "5"],
      ["content-length", "5"],
    ],
  ],
  ["E04 a list of equal lengths", 400, 1, [["Content-Length", "1, 1"]]],
  ["E04 plus", 400, 1, [["Content-Length", "+1"]]],
  ["E04 minus", 400, 1, [["Content-Length", "-1"]]],
  ["E04 hex", 400, 1, [["Content-Length", "0x1"]]],
  ["E04 underscore", 400, 1, [["Content-Length", "1_0"]]],
  ["E04 exponent", 400, 1, [["Content-Length", "1e1"]]],
  ["E04 empty", 400, 1, [["Content-Length", ""]]],
  ["E04 blank inside", 400, 1, [["Content-Length", "1 0"]]],
  ["E04 2^64", 400, 1, [["Content-Length", "18446744073709551616"]]],
  ["E04 16 digits", 400, 1, [["Content-Length", "1000000000000000"]]],
  ["E05 gzip, chunked", 501, 1, [["Transfer-Encoding", "gzip, chunked"]]],
  ["E05 chunked, identity", 501, 1, [["Transfer-Encoding", "chunked, identity"]]],
  ["E05 identity", 501, 1, [["Transfer-Encoding", "identity"]]],
  ["E05 xchunked", 501, 1, [["Transfer-Encoding", "xchunked"]]],
  ["E05 chunked with a parameter", 501, 1, [["Transfer-Encoding", "chunked;a=b"]]],
  ["E05 chunked after NBSP", 501, 1, [["Transfer-Encoding", "\xa0chunked"]]],
  ["E05 empty", 400, 1, [["Transfer-Encoding", ""]]],
  [
    "E05 two lines",
    400,
    1,
    [
      ["Transfer-Encoding", "chunked"],
      ["Transfer-Encoding", "chunked"],
    ],
  ],
  [
    "E05 two lines, one coding",
    400,
    1,
    [
      ["Transfer-Encoding", "gzip"],
      ["Transfer-Encoding", "chunked"],
    ],
  ],
  ["E06 TE on HTTP/1.0", 400, 0, [["Transfer-Encoding", "chunked"]]],
];

for (const [name, status, minor, pairs] of REFUSED) {
  test(`declaredFraming() refuses: ${name}`, () => {
    assert.throws(
      () => declaredFraming(control(...pairs), minor, "client"),
      failure("E_BAD_REQUEST", status),
    );
    assert.throws(
      () => declaredFraming(control(...pairs), minor, "upstream"),
      failure("E_UPSTREAM_PROTOCOL"),
    );
  });
}

test("declaredFraming() reads a length, chunks, and their absence", () => {
  const read = (...pairs: Pair[]) => declaredFraming(control(...pairs), 1, "client");
  assert.deepEqual(read(), { kind: "none" });
  assert.deepEqual(read(["Content-Length", "0"]), { kind: "length", length: 0 });
  assert.deepEqual(read(["content-length", "007"]), { kind: "length", length: 7 });
  assert.deepEqual(read(["CONTENT-LENGTH", "999999999999999"]), {
    kind: "length",
    length: 999_999_999_999_999,
  });
  assert.deepEqual(read(["transfer-encoding", "Chunked"]), { kind: "chunked" });
});

test("I19 closesAfter() obeys Connection in any case and line, and the version's default", () => {
  const cases: readonly (readonly [boolean, 0 | 1, readonly string[]])[] = [
    [false, 1, []],
    [true, 1, ["Close"]],
    [true, 1, ["x-foo, close"]],
    [true, 1, ["keep-alive", "close"]],
    [false, 1, ["closed"]],
    [true, 0, []],
    [false, 0, ["Keep-Alive"]],
    [true, 0, ["keep-alive, close"]],
  ];
  for (const [closes, minor, values] of cases) {
    const fields = values.map((value): Pair => ["Connection", value]);
    assert.equal(closesAfter(control(...fields), minor), closes, `${minor} ${values}`);
  }
});

test("readControl() gathers what the codec obeys and counts what may stand once", () => {
  const read = control(
    ["Host", "a"],
    ["HOST", "b"],
    ["Upgrade", "a"],
    ["upgrade", "b"],
    ["Expect", "100-continue"],
    ["Keep-Alive", "timeout=5"],
    ["Connection", "A"],
    ["Connection", "b, C"],
    ["X-Other", "d"],
  );
  assert.deepEqual(read, {
    host: "b",
    hosts: 2,
    length: undefined,
    lengths: 0,
    coding: undefined,
    codings: 0,
    connection: ["a", "b", "c"],
    upgrade: "a,b",
    expect: "100-continue",
    keepAlive: "timeout=5",
  });
});
