import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Failure } from "../../src/model/failure.ts";
import { parseBaseUrl } from "../../src/wire/base-url.ts";

function hostOf(target: string): string {
  const { authority } = parseBaseUrl(target);
  const { host, port } = authority;
  return `${host.kind === "name" ? host.name : host.address.text} ${port}`;
}

test("parseBaseUrl takes the first segment for the host, and all that follows for the upstream's target", () => {
  for (const [text, host, base, target] of [
    ["/api.example.com", "api.example.com 443", "/api.example.com", "/"],
    ["/api.example.com/", "api.example.com 443", "/api.example.com", "/"],
    ["/API.example.com./v1//x/../y", "api.example.com 443", "/API.example.com.", "/v1//x/../y"],
    ["/api.example.com:8443/v1?a=/b", "api.example.com 8443", "/api.example.com:8443", "/v1?a=/b"],
    ["/api.example.com?a=b", "api.example.com 443", "/api.example.com", "/?a=b"],
    ["/93.184.216.34/x", "93.184.216.34 443", "/93.184.216.34", "/x"],
    ["/[2001:DB8::1]:1/x", "2001:db8::1 1", "/[2001:DB8::1]:1", "/x"],
  ] as const) {
    const url = parseBaseUrl(text);
    assert.deepEqual(
      [hostOf(text), url.base, url.target, url.credentials],
      [host, base, target, undefined],
      text,
    );
  }
});

test("parseBaseUrl takes a segment that begins with ~ for credentials, percent-escapes decoded", () => {
  for (const [text, credentials, base] of [
    ["/~id:token/api.example.com/v1", "id:token", "/~id:token/api.example.com"],
    ["/~id:a%2Fb%3f%25/api.example.com", "id:a/b?%", "/~id:a%2Fb%3f%25/api.example.com"],
    ["/~id:%e9%zz%/api.example.com", "id:\xe9%zz%", "/~id:%e9%zz%/api.example.com"],
    ["/~/api.example.com", "", "/~/api.example.com"],
  ] as const) {
    const url = parseBaseUrl(text);
    assert.deepEqual([url.credentials, url.base], [credentials, base], text);
  }
});

test("parseBaseUrl refuses what names no host in one way", () => {
  for (const text of [
    "",
    "*",
    "api.example.com/",
    "/",
    "//api.example.com/",
    "/?a",
    "/~id:token",
    "/~id:token/",
    "/~id:token//api.example.com/",
    "/~a:b/~c:d/api.example.com",
    "/user@api.example.com/",
    "/api%2eexample.com/",
    "/api.example.com:0/",
    "/api.example.com:99999/",
    "/api.example.com:/",
    "/api.example.com#x/",
    "/https:/api.example.com",
    "/2130706433/",
    "/127.1/",
    "/*/",
  ]) {
    assert.throws(
      () => parseBaseUrl(text),
      (error) => error instanceof Failure && error.code === "E_BAD_REQUEST",
      text,
    );
  }
});

test("parseBaseUrl: base and target are the text, byte for byte", () => {
  const rest = fc.string({ unit: fc.constantFrom(..."/ab.%2e~?&=:@;\\") });
  fc.assert(
    fc.property(rest, (tail) => {
      const url = parseBaseUrl(`/api.example.com/${tail}`);
      assert.equal(`${url.base}${url.target}`, `/api.example.com/${tail}`);
    }),
  );
});
