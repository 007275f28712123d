import assert from "node:assert/strict";
import { test } from "node:test";
import { type Claimed, claimsOf } from "../../src/accept/claims.ts";
import type { Authority } from "../../src/model/arrival.ts";
import type { Scheme } from "../../src/model/exchange.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { parseRequestHead } from "../../src/wire/request-head.ts";

test("claimsOf reads both names and makes the target origin-form", () => {
  const { claims, target } = read("GET http://a.example:8080/x?y HTTP/1.1", "Host: b.example");
  assert.equal(target, "/x?y");
  assert.equal(shown(claims.authority), "a.example:8080");
  assert.equal(shown(claims.host), "b.example:80");
  assert.equal(claims.proxyAuthorization, undefined);
});

test("claimsOf finds no authority in an origin-form target or an asterisk", () => {
  for (const start of ["GET /x HTTP/1.1", "OPTIONS * HTTP/1.1"]) {
    const { claims, target } = read(start, "Host: a.example", "https");
    assert.equal(target, start.split(" ")[1]);
    assert.equal(claims.authority, undefined);
    assert.equal(shown(claims.host), "a.example:443");
  }
});

test("claimsOf takes CONNECT's port for a Host without one", () => {
  const { claims, target } = read("CONNECT a.example:8443 HTTP/1.1", "Host: a.example");
  assert.equal(target, "a.example:8443");
  assert.equal(shown(claims.authority), "a.example:8443");
  assert.equal(shown(claims.host), "a.example:8443");
});

test("claimsOf knows an address from a name", () => {
  assert.equal(shown(read("GET http://[::1]:1/ HTTP/1.1", "Host: 127.0.0.1").claims.authority), "::1:1");
  assert.equal(read("GET / HTTP/1.1", "Host: 127.0.0.1").claims.host?.host.kind, "address");
});

test("claimsOf finds no Host where a 1.0 client sent none", () => {
  assert.equal(read("GET http://a.example/ HTTP/1.0", "Accept: */*").claims.host, undefined);
});

test("claimsOf refuses a target of the other scheme, and says what to do", () => {
  const clear = () => read("GET https://a.example/ HTTP/1.1", "Host: a.example", "http");
  assert.throws(clear, { code: "E_BAD_REQUEST", fault: "client", message: /needs CONNECT/ });
  const secured = () => read("GET http://a.example/ HTTP/1.1", "Host: a.example", "https");
  assert.throws(secured, { code: "E_BAD_REQUEST", message: /encrypted connection/ });
});

test("claimsOf refuses names that cannot be read", () => {
  assert.throws(() => read("GET http://u@a.example/ HTTP/1.1", "Host: a.example"), { code: "E_BAD_REQUEST" });
  assert.throws(() => read("CONNECT a.example HTTP/1.1", "Host: a.example"), { code: "E_BAD_REQUEST" });
  assert.throws(() => read("GET / HTTP/1.1", "Host: a..example"), { code: "E_BAD_REQUEST" });
});

test("claimsOf passes on one Proxy-Authorization and refuses two", () => {
  const one = "Proxy-Authorization: Basic YTpi";
  assert.equal(read("GET / HTTP/1.1", `Host: a.example\r\n${one}`).claims.proxyAuthorization, "Basic YTpi");
  assert.throws(() => read("GET / HTTP/1.1", `Host: a.example\r\n${one}\r\n${one}`), {
    code: "E_BAD_REQUEST",
  });
});

function read(start: string, fields: string, scheme: Scheme = "http"): Claimed {
  const bytes = Buffer.from(`${start}\r\n${fields}\r\n\r\n`, "latin1");
  return claimsOf(parseRequestHead(bytes, bytes.length, DEFAULT_LIMITS), scheme);
}

function shown(authority: Authority | undefined): string | undefined {
  if (authority === undefined) return undefined;
  const { host, port } = authority;
  return `${host.kind === "name" ? host.name : host.address.text}:${port}`;
}
