import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field } from "../../src/model/exchange.ts";
import { type ParsedResponse, parseResponseHead } from "../../src/wire/response-head.ts";
import { failure, headBytes, latin1, limits } from "./support.ts";

function parse(method: string, ...lines: string[]): ParsedResponse {
  const bytes = headBytes(...lines);
  return parseResponseHead(bytes, bytes.length, method, limits);
}

const REFUSED: readonly (readonly [string, ...string[]])[] = [
  ["I07 status 99", "HTTP/1.1 99 Low"],
  ["I07 status 099", "HTTP/1.1 099 Low"],
  ["I07 status 600", "HTTP/1.1 600 High"],
  ["I07 status 999", "HTTP/1.1 999 High"],
  ["I07 status of four digits", "HTTP/1.1 2000 OK"],
  ["I07 no status", "HTTP/1.1 OK"],
  ["I07 HTTP/0.9", "hello"],
  ["I07 HTTP/1.2", "HTTP/1.2 200 OK"],
  ["I07 HTTP/2.0", "HTTP/2.0 200 OK"],
  ["I07 lower case", "http/1.1 200 OK"],
  ["I07 blank before", " HTTP/1.1 200 OK"],
  ["I07 two blanks", "HTTP/1.1  200 OK"],
  ["I07 NUL in the phrase", "HTTP/1.1 200 O\0K"],
  ["I07 bare CR in the phrase", "HTTP/1.1 200 O\rK"],
  ["I07 bare LF", "HTTP/1.1 200 OK\nX: y"],
  ["I07 an empty line first", "", "HTTP/1.1 200 OK"],
  ["I07 CL and TE", "HTTP/1.1 200 OK", "Content-Length: 5", "Transfer-Encoding: chunked"],
  ["I07 two CLs", "HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 6"],
  ["I07 two equal CLs", "HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 5"],
  ["I07 list of CLs", "HTTP/1.1 200 OK", "Content-Length: 5, 5"],
  ["I07 negative CL", "HTTP/1.1 200 OK", "Content-Length: -5"],
  ["I07 TE gzip, chunked", "HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked"],
  ["I07 TE identity", "HTTP/1.1 200 OK", "Transfer-Encoding: identity"],
  ["I07 TE twice", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
  ["I07 TE on HTTP/1.0", "HTTP/1.0 200 OK", "Transfer-Encoding: chunked"],
  ["I07 obs-fold", "HTTP/1.1 200 OK", "X: a", " b"],
  ["I07 NUL in a value", "HTTP/1.1 200 OK", "X: a\0b"],
  ["I07 empty name", "HTTP/1.1 200 OK", ": a"],
  ["I07 blank before the colon", "HTTP/1.1 200 OK", "Content-Length : 5"],
  ["I04 101 with a body", "HTTP/1.1 101 Switching Protocols", "Content-Length: 5"],
  ["I03 103 with chunks", "HTTP/1.1 103 Early Hints", "Transfer-Encoding: chunked"],
];

for (const [name, ...lines] of REFUSED) {
  test(`parseResponseHead() refuses: ${name}`, () => {
    assert.throws(() => parse("GET", ...lines), failure("E_UPSTREAM_PROTOCOL"));
    assert.throws(() => parse("HEAD", ...lines), failure("E_UPSTREAM_PROTOCOL"));
  });
}

test("parseResponseHead() refuses too long a head and too many fields", () => {
  const bytes = headBytes("HTTP/1.1 200 OK", "A: b", "C: d");
  const read = (few: object) => parseResponseHead(bytes, bytes.length, "GET", { ...limits, ...few });
  assert.throws(() => read({ head_bytes: bytes.length - 1 }), failure("E_UPSTREAM_PROTOCOL"));
  assert.throws(() => read({ head_fields: 1 }), failure("E_UPSTREAM_PROTOCOL"));
  assert.equal(read({ head_bytes: bytes.length, head_fields: 2 }).fields.length, 2);
});

test("parseResponseHead() gives every part of a response", () => {
  const parsed = parse("GET", "HTTP/1.1 404 Not Found", "Content-Length: 3", "Keep-Alive: timeout=5, max=9");
  assert.deepEqual(
    { ...parsed, fields: plain(parsed.fields) },
    {
      status: 404,
      phrase: "Not Found",
      minor: 1,
      fields: [
        { name: "Content-Length", key: "content-length", value: "3" },
        { name: "Keep-Alive", key: "keep-alive", value: "timeout=5, max=9" },
      ],
      framing: { kind: "length", length: 3 },
      close: false,
      keepAliveTimeout: 5,
    },
  );
});

test("parseResponseHead() takes a phrase that is empty, missing or not ASCII", () => {
  assert.equal(parse("GET", "HTTP/1.1 200 ").phrase, "");
  assert.equal(parse("GET", "HTTP/1.1 200").phrase, "");
  assert.equal(parse("GET", "HTTP/1.1 200 \xc9t\xe9").phrase, "\xc9t\xe9");
});

test("parseResponseHead() frames by RFC 9112 section 6.3", () => {
  const length = "Content-Length: 5";
  const chunked = "Transfer-Encoding: chunked";
  const cases: readonly (readonly [string, string, string, readonly string[]])[] = [
    ["none", "HEAD", "200", [length]],
    ["none", "HEAD", "200", [chunked]],
    ["none", "HEAD", "200", []],
    ["none", "GET", "100", []],
    ["none", "GET", "103", ["Content-Length: 0"]],
    ["none", "GET", "204", []],
    ["none", "GET", "204", [length]],
    ["none", "GET", "304", [length]],
    ["none", "GET", "304", [chunked]],
    ["none", "CONNECT", "200", [length]],
    ["length", "CONNECT", "407", [length]],
    ["length", "GET", "200", [length]],
    ["length", "head", "200", [length]],
    ["length", "GET", "205", ["Content-Length: 0"]],
    ["chunked", "GET", "200", [chunked]],
    ["close", "GET", "200", []],
    ["close", "POST", "500", []],
  ];
  for (const [kind, method, status, fields] of cases) {
    const { framing } = parse(method, `HTTP/1.1 ${status} X`, ...fields);
    assert.equal(framing.kind, kind, `${method} ${status} ${fields}`);
  }
});

test("parseResponseHead() keeps no connection whose next bytes are in doubt", () => {
  const cases: readonly (readonly [boolean, ...string[]])[] = [
    [false, "HTTP/1.1 200 OK", "Content-Length: 5"],
    [true, "HTTP/1.1 200 OK", "Content-Length: 5", "Connection: close"],
    [true, "HTTP/1.0 200 OK", "Content-Length: 5"],
    [false, "HTTP/1.0 200 OK", "Content-Length: 5", "Connection: keep-alive"],
    [true, "HTTP/1.1 200 OK"],
    [true, "HTTP/1.1 204 No Content", "Content-Length: 5"],
    [true, "HTTP/1.1 204 No Content", "Transfer-Encoding: chunked"],
    [false, "HTTP/1.1 204 No Content", "Content-Length: 0"],
    [false, "HTTP/1.1 204 No Content"],
    [false, "HTTP/1.1 304 Not Modified", "Content-Length: 5"],
  ];
  for (const [close, ...lines] of cases) {
    assert.equal(parse("GET", ...lines).close, close, lines.join());
  }
});

test("parseResponseHead() reads the timeout of Keep-Alive, if it can", () => {
  const timeout = (...fields: string[]) => parse("GET", "HTTP/1.1 200 OK", ...fields).keepAliveTimeout;
  assert.equal(timeout("Keep-Alive: max=5, Timeout=60"), 60);
  assert.equal(timeout("Keep-Alive: max=5", "Keep-Alive: timeout=7"), 7);
  assert.equal(timeout("Keep-Alive: timeout=0"), 0);
  for (const value of [
    "",
    "timeout",
    "timeout=",
    "timeout=-1",
    "timeout=1x",
    "timeout=12345678901",
    "xtimeout=1",
  ]) {
    assert.equal(timeout(`Keep-Alive: ${value}`), undefined, value);
  }
  assert.equal(timeout(), undefined);
});

test("I03 parseResponseHead() reads an interim head and not a byte of what follows", () => {
  const interim = headBytes("HTTP/1.1 103 Early Hints", "Link: </a>");
  const both = Buffer.concat([interim, latin1("HTTP/1.1 200 OK\r\n\r\n")]);
  assert.equal(parseResponseHead(both, interim.length, "GET", limits).status, 103);
});

test("F12 parseResponseHead() keeps fields that repeat", () => {
  const { fields } = parse("GET", "HTTP/1.1 200 OK", "Set-Cookie: a", "set-cookie: b", "Set-Cookie: c");
  assert.deepEqual(
    fields.map((line) => line.value),
    ["a", "b", "c"],
  );
});

/** Fields as literals write them. */
function plain(fields: readonly Field[]): readonly Field[] {
  return fields.map(({ name, key, value }) => ({ name, key, value }));
}
