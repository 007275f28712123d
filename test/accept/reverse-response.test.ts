import assert from "node:assert/strict";
import { test } from "node:test";
import { type Scope, scopeResponse } from "../../src/accept/reverse-response.ts";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import type { Hostname, IpAddress } from "../../src/model/exchange.ts";

const HOST = parseHostname("api.example.com") as Hostname;
const SCOPE: Scope = {
  base: "/api.example.com",
  destination: { kind: "name", host: HOST, port: 443 },
  target: "/v1/me?x=/y",
};

function scoped(name: string, value: string, scope: Scope = SCOPE): string | undefined {
  const fields = scopeResponse([{ name, key: name.toLowerCase(), value }], scope);
  return fields.find(({ key }) => key === name.toLowerCase())?.value;
}

test("scopeResponse keeps order, case and repetition, and puts the document in a sandbox", () => {
  const lines = [
    ["x-B", "1"],
    ["X-A", "2"],
    ["x-b", "3"],
  ] as const;
  const fields = lines.map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
  assert.deepEqual(
    scopeResponse(fields, SCOPE).map(({ name, value }) => [name, value]),
    [...lines, ["Content-Security-Policy", "sandbox"]],
  );
});

test("scopeResponse drops what belongs to the hop, what lets pages read, and what wipes", () => {
  for (const name of [
    "Connection",
    "Keep-Alive",
    "Transfer-Encoding",
    "Proxy-Authenticate",
    "Access-Control-Allow-Origin",
    "access-control-allow-credentials",
    "Clear-Site-Data",
  ]) {
    assert.equal(scoped(name, "x"), undefined, name);
  }
});

test("scopeResponse: a cookie is for its segment alone", () => {
  for (const [cookie, expected] of [
    ["a=b", "a=b; Path=/api.example.com/v1"],
    ["a=b; Path=/", "a=b; Path=/api.example.com"],
    ["a=b;path = /x ;Domain=example.com;Secure", "a=b;Secure; Path=/api.example.com/x"],
    ["a=b; Path=/x; Path=/y", "a=b; Path=/api.example.com/y"],
    ["a=b; Path", "a=b; Path=/api.example.com/v1"],
    ["a=b; Path=x", "a=b; Path=/api.example.com/v1"],
    [
      'a="c=d"; Expires=Wed, 01 Jan 2031 00:00:00 GMT',
      'a="c=d"; Expires=Wed, 01 Jan 2031 00:00:00 GMT; Path=/api.example.com/v1',
    ],
  ] as const) {
    assert.equal(scoped("Set-Cookie", cookie), expected);
  }
  assert.equal(scoped("Set-Cookie", "a=b", { ...SCOPE, target: "/me" }), "a=b; Path=/api.example.com");
  const base = "/~id:a;Domain=x/api.example.com";
  assert.equal(
    scoped("Set-Cookie", "a=b; Path=/", { ...SCOPE, base }),
    "a=b; Path=/~id:a%3BDomain=x/api.example.com",
  );
});

test("scopeResponse: a redirect to the same destination stays below the base", () => {
  for (const [location, expected] of [
    ["https://api.example.com/a//b?c#d", "/api.example.com/a//b?c#d"],
    ["HTTPS://API.example.com.:443", "/api.example.com/"],
    ["https://api.example.com?x", "/api.example.com/?x"],
    ["//api.example.com/a", "/api.example.com/a"],
    ["/a", "/api.example.com/a"],
    ["/\\evil.test/", "/api.example.com/\\evil.test/"],
    ["a/b", "/api.example.com/v1/a/b"],
    ["../../../a", "/api.example.com/a"],
    ["?a", "?a"],
    ["#a", "#a"],
    ["", ""],
  ] as const) {
    assert.equal(scoped("Location", location), expected, location);
  }
});

test("scopeResponse: a redirect elsewhere stays as it is, with the scheme that it means", () => {
  for (const location of [
    "https://evil.test/",
    "https://api.example.com:8443/",
    "http://api.example.com/",
    "https://user@api.example.com/",
    "https://api.example.com\\@evil.test/",
    "mailto:a@example.com",
  ]) {
    const expected = location.includes("\\") ? "/api.example.com/\\@evil.test/" : location;
    assert.equal(scoped("Location", location), expected);
  }
  assert.equal(scoped("Location", "//evil.test/a"), "https://evil.test/a");
});

test("scopeResponse: a destination that is an address is compared as one", () => {
  const address = parseIpAddress("2001:db8::1") as IpAddress;
  const scope: Scope = {
    base: "/[2001:db8::1]",
    destination: { kind: "address", address, port: 443 },
    target: "/",
  };
  assert.equal(scoped("Location", "https://[2001:DB8:0::1]/x", scope), "/[2001:db8::1]/x");
  assert.equal(scoped("Location", "https://[2001:db8::2]/x", scope), "https://[2001:db8::2]/x");
  assert.equal(scoped("Location", "https://api.example.com/x", scope), "https://api.example.com/x");
});
