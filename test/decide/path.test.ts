import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isAmbiguous, readPath } from "../../src/decide/path.ts";

const CLEAR: readonly (readonly [string, string])[] = [
  ["/", "/"],
  ["/a/b/", "/a/b/"],
  ["/a?x=/../y", "/a"],
  ["/?", "/"],
  ["/a?%zz\\;\u00e9", "/a"],
  ["/%41%7E%2d%5F%2e", "/A~-_."],
  ["/a%20b%c3%a9", "/a%20b%C3%A9"],
  ["/a:@!$&'()*+,=b", "/a:@!$&'()*+,=b"],
  ["/.a/..b/...", "/.a/..b/..."],
  ["/%2e%2e%2e", "/..."],
  ["/a%3Fb%23", "/a%3Fb%23"],
  ["/a..%3Bb/..c%20/%3B", "/a..%3Bb/..c%20/%3B"],
  ["/%EF%BC%A1%E2%80%A6", "/%EF%BC%A1%E2%80%A6"],
];

for (const [target, path] of CLEAR) {
  test(`readPath: ${JSON.stringify(target)} is clear`, () => {
    assert.deepEqual(readPath(target), { path, kind: "clear" });
  });
}

const AMBIGUOUS: readonly (readonly [string, readonly string[]])[] = [
  ["dot segments", ["/.", "/..", "/./", "/../", "/a/./b", "/a/../b", "/a/b/..", "/a/.?x"]],
  ["encoded dot segments", ["/%2e", "/%2E%2e/", "/.%2e/a", "/%2e./a", "/a/%2E%2E/b", "/a/%2e%2e"]],
  ["empty segments", ["//", "//evil.com/x", "/a//b", "/a//", "/..//x"]],
  ["backslashes", ["/a\\b", "/\\", "/..\\b", "/a%5cb", "/a%5C"]],
  ["parameters", ["/a;b", "/..;/b", "/;", "/a;x=1/b"]],
  ["escapes of escapes", ["/%25", "/%252e%252e/", "/a%252f"]],
  ["escaped controls", ["/%00", "/a%0d%0a", "/%1f", "/%7F"]],
  ["bad escapes", ["/%", "/%2", "/%zz", "/%2g", "/a%", "/%u002e"]],
  ["overlong and broken UTF-8", ["/%c0%af", "/%c0%ae%c0%ae/", "/%e0%80%af", "/%ff", "/%c3", "/%ed%a0%80"]],
  [
    "disguised dot segments",
    ["/a/..%3b/b", "/.%3Bx", "/a/%2e%2e%3F", "/..%23x/b", "/a/..%20/b", "/.%20%20;"],
  ],
  [
    "full-width dots and slashes",
    ["/a/%EF%BC%8E%EF%BC%8E/b", "/a%EF%BC%8F..", "/%e2%80%a5/b", "/a%EF%BC%BCb"],
  ],
  ["fragments", ["/a#", "/a#/b", "/a?x#y", "#"]],
  ["other than visible ASCII", ["/é", "/a b", "/a\tb", "/\0", "/\x7f", "/\x80"]],
  ["no path at all", ["", "a", "?x", "http://a/", "**", "*?"]],
];

for (const [kind, targets] of AMBIGUOUS) {
  test(`readPath: E20 ${kind} are ambiguous`, () => {
    for (const target of targets) {
      const reading = readPath(target);
      assert.equal(reading.kind, "ambiguous", JSON.stringify(target));
      assert.equal(isAmbiguous(reading, true), true);
    }
  });
}

test("readPath: E21 the server as a whole has no path", () => {
  assert.deepEqual(readPath("*"), { path: "*", kind: "none" });
});

test("isAmbiguous: an encoded slash alone may be accepted", () => {
  const reading = readPath("/a%2fb%2Fc");
  assert.deepEqual(reading, { path: "/a%2Fb%2Fc", kind: "encoded-slash" });
  assert.deepEqual([isAmbiguous(reading, true), isAmbiguous(reading, false)], [false, true]);
  assert.equal(isAmbiguous(readPath("/a"), false), false);
});

test("isAmbiguous: an encoded slash that moves the path is never accepted", () => {
  for (const target of [
    "/a/..%2fb",
    "/a%2f..%2fb",
    "/%2e%2e%2f",
    "/a%2f%2fb",
    "/%2fa",
    "/a/%2F",
    "/a%2f/b",
    "/a%2f.",
  ]) {
    assert.equal(isAmbiguous(readPath(target), true), true, target);
  }
});

test("readPath: what is clear, the URL standard resolves to the same path", () => {
  const pieces = fc.constantFrom(
    "/",
    "a",
    ".",
    "..",
    "%2e",
    "%2E",
    "%2f",
    "%41",
    "%7e",
    "%20",
    "%25",
    ";",
    "\\",
    "?",
    "#",
    "~",
    ":",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 10 }), (parts) => {
      const reading = readPath(`/${parts.join("")}`);
      if (reading.kind !== "clear") return;
      const { pathname } = new URL(`http://a.example/${parts.join("")}`);
      assert.equal(decodeURIComponent(reading.path), decodeURIComponent(pathname));
      assert.deepEqual(readPath(reading.path), reading);
    }),
    { numRuns: 5_000 },
  );
});

test("readPath: decoding twice changes nothing, whatever the origin does", () => {
  const pieces = fc.constantFrom("%", "2", "e", "5", "c", "/", ".", "f", "4", "1");
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const reading = readPath(`/${parts.join("")}`);
      if (isAmbiguous(reading, true)) return;
      const once = decodeURIComponent(reading.path);
      assert.equal(decodeURIComponent(once), once);
      assert.equal(/\/\.{0,2}(?:\/|$)/.test(once.replace(/\/$/, "")), false, once);
    }),
    { numRuns: 5_000 },
  );
});
