/** Requests in HTTP/2: what is understood, what is refused, and what is written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { isUpgrade, joinCookies, readH2Request, renderH2Request } from "../../src/wire/h2-request.ts";

const PSEUDO = { ":method": "GET", ":scheme": "https", ":authority": "a.example.com", ":path": "/p" };

function pairs(
  changes: Readonly<Record<string, string | undefined>>,
  ...fields: readonly string[]
): string[] {
  const all: Record<string, string | undefined> = { ...PSEUDO, ...changes };
  const pseudo = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  return [...pseudo, ...fields];
}

function read(list: readonly string[], whole = true) {
  return readH2Request(list, whole, DEFAULT_LIMITS);
}

function line(key: string, value: string) {
  return { name: key, key, value };
}

test("readH2Request gives a request's parts", () => {
  assert.deepEqual(read(pairs({}, "x", "1")), {
    method: "GET",
    target: "/p",
    authority: "a.example.com",
    host: undefined,
    fields: [line("x", "1")],
    framing: { kind: "none" },
    websocket: false,
    expectContinue: false,
  });
});

test("readH2Request takes the framing from END_STREAM and Content-Length", () => {
  assert.deepEqual(read(pairs({}), false).framing, { kind: "chunked" });
  assert.deepEqual(read(pairs({}, "content-length", "3"), false).framing, { kind: "length", length: 3 });
  assert.deepEqual(read(pairs({}, "content-length", "0"), true).framing, { kind: "length", length: 0 });
  assert.throws(() => read(pairs({}, "content-length", "3"), true), { status: 400 });
  assert.throws(() => read(pairs({}, "content-length", "3", "content-length", "3"), false), { status: 400 });
});

test("readH2Request: a Host may stand in for :authority, once", () => {
  const request = read(pairs({ ":authority": undefined }, "host", "b"));
  assert.deepEqual([request.authority, request.host], [undefined, "b"]);
  assert.throws(() => read(pairs({ ":authority": undefined })), { status: 400 });
  assert.throws(() => read(pairs({}, "host", "b", "host", "b")), { status: 400 });
});

test("readH2Request: a WebSocket is judged as the GET that it would be in HTTP/1.1", () => {
  const request = read(pairs({ ":method": "CONNECT", ":protocol": "websocket" }), false);
  assert.deepEqual([request.method, request.target, request.websocket], ["GET", "/p", true]);
  const other = read(pairs({ ":method": "CONNECT", ":protocol": "connect-udp" }), false);
  assert.deepEqual([other.method, other.target, other.websocket], ["CONNECT", "/p", false]);
});

test("readH2Request: a plain CONNECT has an authority and nothing else", () => {
  const bare = { ":method": "CONNECT", ":scheme": undefined, ":path": undefined };
  assert.equal(read(pairs(bare), false).target, "a.example.com");
  assert.equal(read(pairs({ ...bare, ":authority": undefined }, "host", "b"), false).target, "");
  assert.throws(() => read(pairs({ ...bare, ":path": "/" }), false), { status: 400 });
  assert.throws(() => read(pairs({ ...bare, ":scheme": "https" }), false), { status: 400 });
});

test("readH2Request: OPTIONS may ask for the whole server", () => {
  assert.equal(read(pairs({ ":method": "OPTIONS", ":path": "*" })).target, "*");
});

for (const [what, list, status] of [
  ["no method", pairs({ ":method": undefined }), 400],
  ["a method that is no token", pairs({ ":method": "GE T" }), 400],
  ["an unknown pseudo field", pairs({ ":x": "1" }), 400],
  ["clear text (D09)", pairs({ ":scheme": "http" }), 400],
  [":protocol without CONNECT", pairs({ ":protocol": "websocket" }), 400],
  ["no path", pairs({ ":path": undefined }), 400],
  ["a path without a slash", pairs({ ":path": "p" }), 400],
  ["a path with a blank", pairs({ ":path": "/ HTTP/1.1" }), 400],
  ["`*` of GET", pairs({ ":path": "*" }), 400],
  ["a path that is too long", pairs({ ":path": `/${"a".repeat(DEFAULT_LIMITS.target_bytes)}` }), 414],
  ["an unknown expectation", pairs({}, "expect", "200-ok"), 417],
] as const) {
  test(`readH2Request refuses ${what}`, () => {
    assert.throws(() => read(list), { code: "E_BAD_REQUEST", status });
  });
}

test("readH2Request: only a request with a body waits for a 100", () => {
  assert.equal(read(pairs({}, "expect", "100-Continue"), false).expectContinue, true);
  assert.equal(read(pairs({}, "expect", "100-continue"), true).expectContinue, false);
});

const HEAD = {
  method: "POST",
  target: "/p",
  minor: 1,
  fields: [line("host", "a.example.com"), line("x", "1")],
} as const;

test("renderH2Request makes :authority of Host", () => {
  assert.deepEqual(renderH2Request(HEAD, { kind: "length", length: 3 }), [
    ...[":method", "POST", ":scheme", "https", ":authority", "a.example.com", ":path", "/p"],
    ...["x", "1", "content-length", "3"],
  ]);
});

test("renderH2Request makes an extended CONNECT of an upgrade", () => {
  const fields = [...HEAD.fields, line("upgrade", "websocket")];
  assert.ok(isUpgrade(fields));
  assert.ok(!isUpgrade(HEAD.fields));
  assert.deepEqual(renderH2Request({ ...HEAD, method: "GET", fields }, { kind: "chunked" }).slice(0, 4), [
    ...[":method", "CONNECT", ":protocol", "websocket"],
  ]);
});

test("renderH2Request writes nothing that could not leave framed", () => {
  for (const [head, framing] of [
    [{ ...HEAD, method: "P OST" }, { kind: "none" }],
    [{ ...HEAD, target: "/ x" }, { kind: "none" }],
    [{ ...HEAD, fields: [] }, { kind: "none" }],
    [HEAD, { kind: "close" }],
  ] as const) {
    assert.throws(() => renderH2Request(head, framing), { code: "E_INTERNAL" });
  }
});

test("joinCookies makes one field of the crumbs, where the first one stood", () => {
  const fields = [line("cookie", "a=1"), line("x", "1"), line("cookie", "b=2")];
  assert.deepEqual(joinCookies(fields), [line("cookie", "a=1; b=2"), line("x", "1")]);
  const whole = [line("cookie", "a=1"), line("x", "1")];
  assert.equal(joinCookies(whole), whole);
});
