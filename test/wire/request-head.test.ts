import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field } from "../../src/model/exchange.ts";
import { type ParsedRequest, parseRequestHead } from "../../src/wire/request-head.ts";
import { failure, headBytes, latin1, limits } from "./support.ts";

function parse(...lines: string[]): ParsedRequest {
  const bytes = headBytes(...lines);
  return parseRequestHead(bytes, bytes.length, limits);
}

function get(...fields: string[]): ParsedRequest {
  return parse("GET / HTTP/1.1", "Host: a.example", ...fields);
}

const REFUSED_LINES: readonly (readonly [string, number, string])[] = [
  ["E14 HTTP/0.9", 400, "GET /"],
  ["E14 HTTP/0.9 with a version-like target", 400, "GET HTTP/1.1"],
  ["E14 HTTP/1.2", 505, "GET / HTTP/1.2"],
  ["E14 HTTP/2.0", 505, "GET / HTTP/2.0"],
  ["E14 HTTP/2 preface", 505, "PRI * HTTP/2.0"],
  ["E14 HTTP/1.10", 400, "GET / HTTP/1.10"],
  ["E14 HTTP/1", 400, "GET / HTTP/1"],
  ["E14 HTTP/11.1", 400, "GET / HTTP/11.1"],
  ["E14 lower case", 400, "GET / http/1.1"],
  ["E14 other protocol", 400, "GET / ICE/1.0"],
  ["no target", 400, "GET  HTTP/1.1"],
  ["two blanks", 400, "GET  / HTTP/1.1"],
  ["two blanks before the version", 400, "GET /  HTTP/1.1"],
  ["blank after the version", 400, "GET / HTTP/1.1 "],
  ["tab for a blank", 400, "GET\t/\tHTTP/1.1"],
  ["blank before the method", 400, " GET / HTTP/1.1"],
  ["method that is no token", 400, "G(T / HTTP/1.1"],
  ["no method", 400, " / HTTP/1.1"],
  ["bare CR in the line", 400, "GET /\r HTTP/1.1"],
  ["bare LF after the line", 400, "GET / HTTP/1.1\nX: y"],
  ["llhttp#877 LF ends a line without version", 400, "GET /x\nHost: a"],
  ["E20 blank in the target", 400, "GET /a b HTTP/1.1"],
  ["E20 non-ASCII target", 400, "GET /\xe9 HTTP/1.1"],
  ["E20 NUL in the target", 400, "GET /a\0b HTTP/1.1"],
  ["E20 DEL in the target", 400, "GET /a\x7f HTTP/1.1"],
  ["A14 NUL in the target of CONNECT", 400, "CONNECT a\0b:443 HTTP/1.1"],
  ["A13 non-ASCII target of CONNECT", 400, "CONNECT b\xfccher.de:443 HTTP/1.1"],
  ["E22 relative target", 400, "GET foo HTTP/1.1"],
  ["E22 authority as target of GET", 400, "GET a.example:80 HTTP/1.1"],
  ["E22 asterisk of GET", 400, "GET * HTTP/1.1"],
  ["E22 scheme without slashes", 400, "GET http:a HTTP/1.1"],
  ["E22 query alone", 400, "GET ?a HTTP/1.1"],
];

for (const [name, status, line] of REFUSED_LINES) {
  test(`parseRequestHead() refuses: ${name}`, () => {
    assert.throws(() => parse(line, "Host: a.example"), failure("E_BAD_REQUEST", status));
  });
}

const REFUSED_FIELDS: readonly (readonly [string, number, readonly string[]])[] = [
  ["D10 no Host", 400, []],
  ["D10 two Hosts", 400, ["Host: a.example", "Host: b.example"]],
  ["D10 two equal Hosts", 400, ["Host: a.example", "host: a.example"]],
  ["D10 empty Host", 400, ["Host:"]],
  ["D10 list of Hosts", 400, ["Host: a.example, b.example"]],
  ["D10 list without blank", 400, ["Host: a.example,b.example"]],
  ["D10 two words", 400, ["Host: a.example b.example"]],
  ["D10 userinfo", 400, ["Host: good.example@evil.example"]],
  ["D10 path", 400, ["Host: a.example/x"]],
  ["D10 fragment", 400, ["Host: a.example#@b.example"]],
  ["D10 backslash", 400, ["Host: a.example\\b.example"]],
  ["D10 port without digits", 400, ["Host: a.example:"]],
  ["D10 port with letters", 400, ["Host: a.example:80a"]],
  ["D10 port 0", 400, ["Host: a.example:0"]],
  ["D10 two ports", 400, ["Host: a.example:80:81"]],
  ["A15 percent sign", 400, ["Host: a%2eexample"]],
  ["A13 high bytes", 400, ["Host: b\xfccher.example"]],
  ["A20 wildcard", 400, ["Host: *.example.org"]],
  ["B14 zone id", 400, ["Host: [fe80::1%25eth0]"]],
  ["IPv6 without brackets", 400, ["Host: ::1"]],
  ["F01 host nominated", 400, ["Host: a.example", "Connection: host"]],
  ["F01 length nominated in a list", 400, ["Host: a.example", "Connection: close, Content-Length"]],
  [
    "F01 coding nominated in a second line",
    400,
    ["Host: a.example", "Connection: a", "Connection: Transfer-Encoding"],
  ],
  ["I02 unknown expectation", 417, ["Host: a.example", "Expect: 200-ok", "Content-Length: 1"]],
  ["I02 expectation sent twice", 417, ["Host: a.example", "Expect: 100-continue", "Expect: 100-continue"]],
  ["I02 empty expectation", 417, ["Host: a.example", "Expect:"]],
  ["E01 CL and TE", 400, ["Host: a.example", "Content-Length: 5", "Transfer-Encoding: chunked"]],
  ["E05 gzip, chunked", 501, ["Host: a.example", "Transfer-Encoding: gzip, chunked"]],
  ["E07 obs-fold", 400, ["Host: a.example", "X: 1", " Authorization: a"]],
  ["E19 blank before the colon", 400, ["Host: a.example", "Content-Length : 5"]],
];

for (const [name, status, fields] of REFUSED_FIELDS) {
  test(`parseRequestHead() refuses: ${name}`, () => {
    assert.throws(() => parse("GET / HTTP/1.1", ...fields), failure("E_BAD_REQUEST", status));
  });
}

test("E06 parseRequestHead() refuses a transfer coding on HTTP/1.0", () => {
  assert.throws(
    () => parse("POST / HTTP/1.0", "Host: a.example", "Transfer-Encoding: chunked"),
    failure("E_BAD_REQUEST", 400),
  );
});

test("E17 parseRequestHead() refuses CONNECT with a body, even an empty one", () => {
  for (const framing of ["Content-Length: 5", "Content-Length: 0", "Transfer-Encoding: chunked"]) {
    assert.throws(
      () => parse("CONNECT a.example:443 HTTP/1.1", "Host: a.example:443", framing),
      failure("E_BAD_REQUEST", 400),
    );
  }
});

test("E13 parseRequestHead() refuses too many fields wherever the decisive one stands", () => {
  const fields = Array.from({ length: 1500 }, (_, index) => `X-${index}: a`);
  for (const last of ["Transfer-Encoding: chunked", "Authorization: a", "Host: a.example"]) {
    assert.throws(() => parse("GET / HTTP/1.1", ...fields, last), failure("E_BAD_REQUEST", 431));
  }
});

test("parseRequestHead() refuses a long head with 431 and a long target with 414", () => {
  const few = { ...limits, head_bytes: 200, target_bytes: 20 };
  const read = (bytes: Buffer, end = bytes.length) => parseRequestHead(bytes, end, few);
  const fits = headBytes(`GET /${"a".repeat(19)} HTTP/1.1`, "Host: a.example");
  assert.equal(read(fits).rawTarget.length, 20);
  const target = headBytes(`GET /${"a".repeat(20)} HTTP/1.1`, "Host: a.example");
  assert.throws(() => read(target), failure("E_BAD_REQUEST", 414));
  const head = headBytes("GET / HTTP/1.1", "Host: a.example", `X: ${"a".repeat(200)}`);
  assert.throws(() => read(head), failure("E_BAD_REQUEST", 431));
  assert.throws(() => read(latin1(`GET /${"a".repeat(300)}`)), failure("E_BAD_REQUEST", 414));
  assert.throws(() => read(latin1(`\r\nGET /${"a".repeat(300)}`)), failure("E_BAD_REQUEST", 414));
});

test("parseRequestHead() gives every part of a request", () => {
  const parsed = parse("POST /a?b=c%2f HTTP/1.1", "Host: A.example:8443", "content-length: 3");
  assert.deepEqual(
    { ...parsed, fields: plain(parsed.fields) },
    {
      method: "POST",
      rawTarget: "/a?b=c%2f",
      form: "origin",
      minor: 1,
      fields: [
        { name: "Host", key: "host", value: "A.example:8443" },
        { name: "content-length", key: "content-length", value: "3" },
      ],
      framing: { kind: "length", length: 3 },
      close: false,
      host: "A.example:8443",
      upgrade: undefined,
      expectContinue: false,
    },
  );
});

test("E18 parseRequestHead() reads nothing past the head", () => {
  const first = headBytes("GET /1 HTTP/1.1", "Host: a.example");
  const both = Buffer.concat([first, headBytes("GET /2 HTTP/1.1", "Host: b.example")]);
  assert.equal(parseRequestHead(both, first.length, limits).host, "a.example");
});

test("E20 E21 E22 parseRequestHead() names the target's form and keeps its bytes", () => {
  const cases = [
    ["GET", "//evil.example/x", "origin"],
    ["GET", "/..//x", "origin"],
    ["GET", "/%2e%2e/", "origin"],
    ["GET", "/a\\b", "origin"],
    ["GET", "/a#frag", "origin"],
    ["GET", '/"<>[]^`{|}', "origin"],
    ["OPTIONS", "*", "asterisk"],
    ["OPTIONS", "/", "origin"],
    ["GET", "http://a.example/x", "absolute"],
    ["GET", "HTTPS://a.example", "absolute"],
    ["GET", "http://@/", "absolute"],
    ["GET", "ftp://a.example/", "absolute"],
    ["CONNECT", "a.example:443", "authority"],
    ["CONNECT", "/etc", "authority"],
    ["connect", "/etc", "origin"],
  ] as const;
  for (const [method, target, form] of cases) {
    const { rawTarget, form: read } = parse(`${method} ${target} HTTP/1.1`, "Host: a.example");
    assert.deepEqual([rawTarget, read], [target, form]);
  }
});

test("D07 parseRequestHead() leaves the judgement of absolute-form against Host to the caller", () => {
  const { rawTarget, host } = parse("GET http://evil.example/ HTTP/1.1", "Host: good.example");
  assert.deepEqual([rawTarget, host], ["http://evil.example/", "good.example"]);
});

test("parseRequestHead() takes Host in every single form", () => {
  const hosts = [
    "a.example",
    "A.Example.",
    "_dmarc.a.example:8080",
    "1.2.3.4",
    "[::1]",
    "[::ffff:1.2.3.4]:443",
  ];
  for (const host of hosts) {
    assert.equal(parse("GET / HTTP/1.1", `Host: ${host}`).host, host);
  }
});

test("parseRequestHead() lets HTTP/1.0 go without Host and close by default", () => {
  const bare = parse("GET / HTTP/1.0", "Accept: a");
  assert.deepEqual([bare.host, bare.minor, bare.close], [undefined, 0, true]);
  assert.equal(parse("GET / HTTP/1.0", "Host: a.example", "Connection: keep-alive").close, false);
  assert.throws(() => parse("GET / HTTP/1.0", "Host: a", "Host: a"), failure("E_BAD_REQUEST", 400));
});

test("parseRequestHead() skips one empty line before the request and no more", () => {
  assert.equal(parse("", "GET /a HTTP/1.1", "Host: a.example").rawTarget, "/a");
  assert.throws(() => parse("", "", "GET / HTTP/1.1", "Host: a.example"), failure("E_BAD_REQUEST", 400));
  assert.throws(() => parse(""), failure("E_BAD_REQUEST", 400));
});

test("I02 parseRequestHead() sees that the client waits for a 100, where a body follows", () => {
  assert.equal(get("Expect: 100-Continue", "Content-Length: 1").expectContinue, true);
  assert.equal(get("Expect: 100-continue", "Transfer-Encoding: chunked").expectContinue, true);
  assert.equal(get("Expect: 100-continue", "Content-Length: 0").expectContinue, false);
  assert.equal(get("Expect: 100-continue").expectContinue, false);
  assert.equal(parse("POST / HTTP/1.0", "Expect: 100-continue", "Content-Length: 1").expectContinue, false);
});

test("F09 parseRequestHead() reports an upgrade that Connection nominates, on HTTP/1.1 alone", () => {
  assert.equal(get("Connection: keep-alive, Upgrade", "Upgrade: WebSocket").upgrade, "websocket");
  assert.equal(get("Connection: upgrade", "Upgrade: h2c, TLS/1.0").upgrade, "h2c,tls/1.0");
  assert.equal(get("Connection: close", "Upgrade: websocket").upgrade, undefined);
  assert.equal(get("Connection: upgrade").upgrade, undefined);
  assert.equal(parse("GET / HTTP/1.0", "Connection: upgrade", "Upgrade: websocket").upgrade, undefined);
});

test("E12 E23 parseRequestHead() takes GET with a body and fields that are mere data", () => {
  const request = get("Transfer-Encoding: chunked", "X-Forwarded-Host: evil.example", "__proto__: a");
  assert.deepEqual(request.framing, { kind: "chunked" });
  assert.equal(request.host, "a.example");
  assert.equal(request.fields.length, 4);
});

/** Fields as literals write them. */
function plain(fields: readonly Field[]): readonly Field[] {
  return fields.map(({ name, key, value }) => ({ name, key, value }));
}
