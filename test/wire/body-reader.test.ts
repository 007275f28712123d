import assert from "node:assert/strict";
import { test } from "node:test";
import type { Framing } from "../../src/model/exchange.ts";
import { BodyReader, type BodyReaderLimits } from "../../src/wire/body-reader.ts";
import { CHUNKED, CLOSE, NONE } from "../../src/wire/framing.ts";
import { failure, latin1, limits } from "./support.ts";

interface Outcome {
  readonly reader: BodyReader;
  readonly data: string;
  /** Index of the first byte that was not taken. */
  readonly next: number;
}

/** Feeds `text` in pieces of `size` until the reader is done. */
function read(
  framing: Framing,
  text: string,
  size = text.length,
  some: Partial<BodyReaderLimits> = {},
): Outcome {
  const reader = new BodyReader(framing, { ...limits, ...some }, "client");
  let data = "";
  let next = 0;
  while (next < text.length && !reader.done) {
    const piece = latin1(text.slice(next, next + size));
    next += reader.read(piece, 0, (bytes) => {
      data += bytes.toString("latin1");
    });
  }
  return { reader, data, next };
}

function unexpected(data: Buffer): void {
  assert.fail(`unexpected data of ${data.length} bytes`);
}

function chunks(text: string, size?: number, some?: Partial<BodyReaderLimits>): Outcome {
  return read(CHUNKED, text, size, some);
}

test("E18 BodyReader.read() takes a length's bytes and not one of the next message", () => {
  for (const size of [1, 2, 5, 100]) {
    const { reader, data, next } = read({ kind: "length", length: 5 }, "helloGET /", size);
    assert.deepEqual([data, next, reader.done], ["hello", 5, true]);
  }
});

test("BodyReader.read() starts where it is told and hands out views, not copies", () => {
  const bytes = latin1("xxhelloyy");
  const views: Buffer[] = [];
  const reader = new BodyReader({ kind: "length", length: 5 }, limits, "client");
  assert.equal(
    reader.read(bytes, 2, (data) => views.push(data)),
    7,
  );
  assert.equal(views.length, 1);
  assert.equal(views[0]?.buffer, bytes.buffer);
  assert.equal(views[0]?.toString(), "hello");
});

test("BodyReader is done at once where there is no body", () => {
  for (const framing of [NONE, { kind: "length", length: 0 } as const]) {
    const { reader, data, next } = read(framing, "GET /");
    assert.deepEqual([data, next, reader.done, reader.started], ["", 0, true, false]);
    assert.equal(reader.read(latin1("GET /"), 0, unexpected), 0);
    reader.eof();
  }
});

test("BodyReader.started tells whether a byte was read", () => {
  const reader = new BodyReader(CHUNKED, limits, "client");
  assert.equal(reader.started, false);
  reader.read(latin1(""), 0, unexpected);
  assert.equal(reader.started, false);
  reader.read(latin1("5"), 0, unexpected);
  assert.equal(reader.started, true);
});

test("BodyReader takes everything until the end, where the end closes it", () => {
  const { reader, data, next } = read(CLOSE, "hello\r\n0\r\n\r\n", 3);
  assert.deepEqual([data, next, reader.done], ["hello\r\n0\r\n\r\n", 12, false]);
  reader.eof();
  assert.equal(reader.done, true);
});

test("BodyReader decodes chunks in any pieces", () => {
  const text = '5\r\nhello\r\n00A;a=b;c="\\"d;";e\r\n, world!!!\r\n0;x\r\nX-Sum: 1\r\nx-b:2\r\n\r\nGET /';
  for (let size = 1; size <= text.length; size += 1) {
    const { reader, data, next } = chunks(text, size);
    assert.deepEqual([data, text.slice(next), reader.done], ["hello, world!!!", "GET /", true]);
    assert.deepEqual(
      reader.trailers.map(({ name, value }) => [name, value]),
      [
        ["X-Sum", "1"],
        ["x-b", "2"],
      ],
    );
    reader.eof();
  }
});

test("BodyReader takes an empty chunked body, and any spelling of zero and of digits", () => {
  assert.deepEqual(chunks("0\r\n\r\n").data, "");
  assert.equal(chunks("0000000000000\r\n\r\n").reader.done, true);
  assert.equal(chunks("aB\r\n".concat("x".repeat(171), "\r\n0\r\n\r\n")).data.length, 171);
});

test("BodyReader counts a chunk of 13 digits exactly", () => {
  const reader = new BodyReader(CHUNKED, limits, "client");
  reader.read(latin1("fffffffffffff\r\nabc"), 0, (data) => assert.equal(data.toString(), "abc"));
  assert.throws(() => reader.eof(), failure("E_BAD_REQUEST", 400));
});

const MALFORMED: readonly (readonly [string, string])[] = [
  ["no size", "\r\n"],
  ["extension without size", ";a\r\n"],
  ["blank before the size", " 5\r\nhello\r\n"],
  ["blank after the size", "5 \r\nhello\r\n"],
  ["tab after the size", "5\t\r\nhello\r\n"],
  ["0x1", "0x1\r\na\r\n"],
  ["plus", "+1\r\na\r\n"],
  ["minus", "-1\r\na\r\n"],
  ["underscore", "1_0\r\n"],
  ["letter beyond f", "g\r\n"],
  ["14 digits", "00000000000001\r\na\r\n"],
  ["17 digits", "10000000000000001\r\n"],
  ["LF after the size", "5\nhello"],
  ["CR alone after the size", "5\rhello"],
  ["LF ends an extension", "5;a=b\nhello\r\n0\r\n\r\n"],
  ["CR inside an extension", "5;a\rb\r\n"],
  ["NUL in an extension", "5;a=\0\r\n"],
  ["extension with a blank", "5; a=b\r\n"],
  ["extension without a name", "5;\r\n"],
  ["extension without a value", "5;a=\r\n"],
  ["quotes that do not close", '5;a="b\r\n'],
  ["chunk longer than its size", "5\r\nhello!\r\n"],
  ["data without CRLF", "5\r\nhello0\r\n\r\n"],
  ["LF after data", "5\r\nhello\n0\r\n\r\n"],
  ["CR without LF after data", "5\r\nhello\rx0\r\n\r\n"],
  ["LF for the last line", "0\r\n\n"],
  ["LF after a trailer", "0\r\nX: a\n\r\n"],
  ["two LFs after a trailer", "0\r\nX: a\r\n\n"],
  ["bare CR in a trailer", "0\r\nX: a\rb\r\n\r\n"],
  ["trailer that folds", "0\r\nX: a\r\n b\r\n\r\n"],
  ["trailer without a name", "0\r\n: a\r\n\r\n"],
  ["trailer without a colon", "0\r\nX\r\n\r\n"],
  ["NUL in a trailer", "0\r\nX: \0\r\n\r\n"],
];

for (const [name, text] of MALFORMED) {
  test(`E19 I07 BodyReader refuses chunks in any pieces: ${name}`, () => {
    for (let size = 1; size <= text.length; size += 1) {
      assert.throws(() => chunks(text, size), failure("E_BAD_REQUEST", 400));
    }
  });
}

test("BodyReader refuses a bare LF without waiting for more, whatever the pieces", () => {
  for (const text of ["5;a\n", "0\r\n\n", "0\r\nX: a\n", "0\r\nX: a\r\n\n"]) {
    for (let size = 1; size <= text.length; size += 1) {
      assert.throws(() => chunks(text, size), failure("E_BAD_REQUEST", 400));
    }
  }
});

test("BodyReader stays refused after a refusal", () => {
  for (const text of ["x", "0\r\n:\r\n\r\n"]) {
    const reader = new BodyReader(CHUNKED, limits, "upstream");
    const feed = (more: string) => reader.read(latin1(more), 0, unexpected);
    assert.throws(() => feed(text), failure("E_UPSTREAM_PROTOCOL"));
    assert.throws(() => feed("0\r\n\r\n"), failure("E_UPSTREAM_PROTOCOL"));
    assert.throws(() => reader.eof(), failure("E_UPSTREAM_PROTOCOL"));
    assert.equal(reader.done, false);
  }
});

test("E09 BodyReader drops extensions and caps their sum over the body (CVE-2024-22019)", () => {
  const chunk = `1;${"a".repeat(98)}\r\nx\r\n`;
  const few = { chunk_extension_bytes: 1010 };
  assert.equal(chunks(`${chunk.repeat(10)}0\r\n\r\n`, 7, few).data, "x".repeat(10));
  assert.throws(() => chunks(chunk.repeat(11), 7, few), failure("E_BAD_REQUEST", 413));
  assert.throws(() => chunks(`1;${"a".repeat(1100)}`, 7, few), failure("E_BAD_REQUEST", 413));
});

test("I05 BodyReader caps trailers in bytes and in number", () => {
  const trailers = "X: a\r\n".repeat(10);
  const text = `0\r\n${trailers}\r\n`;
  assert.equal(chunks(text, 4, { trailer_bytes: 62, head_fields: 10 }).reader.trailers.length, 10);
  assert.throws(() => chunks(text, 4, { trailer_bytes: 61 }), failure("E_BAD_REQUEST", 431));
  assert.throws(() => chunks(text, 4, { head_fields: 9 }), failure("E_BAD_REQUEST", 431));
});

test("I05 BodyReader drops trailers that may not stand there", () => {
  const text = "0\r\nContent-Length: 5\r\nX-Sum: a\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n";
  assert.deepEqual(
    chunks(text).reader.trailers.map((line) => line.name),
    ["X-Sum"],
  );
});

test("E11 E25 I08 BodyReader.eof() refuses a body that was cut", () => {
  const cuts: readonly (readonly [Framing, string])[] = [
    [{ kind: "length", length: 10 }, "hello"],
    [{ kind: "length", length: 10 }, ""],
    ...[
      "",
      "5",
      "5\r\n",
      "5\r\nhel",
      "5\r\nhello",
      "5\r\nhello\r\n",
      "0\r\n",
      "0\r\nX: a\r\n",
      "0\r\n\r",
    ].map((text) => [CHUNKED, text] as const),
  ];
  for (const [framing, text] of cuts) {
    const { reader } = read(framing, text);
    assert.equal(reader.done, false);
    assert.throws(() => reader.eof(), failure("E_BAD_REQUEST", 400), text);
  }
});
