import assert from "node:assert/strict";
import { test } from "node:test";
import { findHeadEnd } from "../../src/wire/find-head.ts";
import { headBytes, latin1 } from "./support.ts";

test("findHeadEnd() gives the index after the empty line", () => {
  const head = headBytes("GET / HTTP/1.1", "Host: a.example");
  assert.equal(findHeadEnd(head, 0), head.length);
  assert.equal(findHeadEnd(Buffer.concat([head, latin1("body\r\n\r\n")]), 0), head.length);
});

test("findHeadEnd() asks for more at every cut of a good head", () => {
  const head = headBytes("\r\nGET / HTTP/1.1", "Host: a.example", "X:\tcaf\xe9", "Y:");
  for (let length = 0; length < head.length; length += 1) {
    assert.equal(findHeadEnd(head.subarray(0, length), 0), -1, String(length));
  }
});

test("findHeadEnd() finds the end from three bytes before what is new", () => {
  const head = headBytes("GET / HTTP/1.1", "Host: a.example");
  for (let seen = 0; seen < head.length; seen += 1) {
    assert.equal(findHeadEnd(head, seen - 3), head.length, String(seen));
  }
});

test("findHeadEnd() ends at once where no head can come of it", () => {
  const cases: readonly (readonly [string, string, number])[] = [
    ["bare LF lines", "GET / HTTP/1.1\nHost: a\n\n", 15],
    ["LF first", "\nGET", 1],
    ["bare CR", "GET /\rx", 6],
    ["NUL", "GET /\0", 6],
    ["DEL", "GET /\x7f", 6],
    ["D21 TLS on an HTTP port", "\x16\x03\x01", 1],
    ["D20 SSLv2", "\x80\x2e\x01", 1],
  ];
  for (const [name, text, end] of cases) {
    assert.equal(findHeadEnd(latin1(text), 0), end, name);
  }
});

test("findHeadEnd() sees a bare LF whose line began before the search", () => {
  assert.equal(findHeadEnd(latin1("GET / HTTP/1.1\n"), 14), 15);
  assert.equal(findHeadEnd(latin1("GET / HTTP/1.1\r\n"), 15), -1);
});
