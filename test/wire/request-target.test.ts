import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAbsoluteForm, parseAuthorityForm } from "../../src/wire/request-target.ts";
import { failure } from "./support.ts";

function spelt(raw: string, method?: string): string {
  const { scheme, authority, target } = parseAbsoluteForm(raw, method);
  const host = authority.host.kind === "name" ? authority.host.name : authority.host.address.text;
  return `${scheme} ${host} ${authority.port} ${target}`;
}

test("parseAbsoluteForm() gives scheme, authority and the target's bytes", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["http://a.example/x?y", "http a.example 80 /x?y"],
    ["HTTP://A.Example.:8080/X", "http a.example 8080 /X"],
    ["https://a.example/", "https a.example 443 /"],
    ["http://a.example", "http a.example 80 /"],
    ["http://a.example?x=/y", "http a.example 80 /?x=/y"],
    ["http://[::1]:81/", "http ::1 81 /"],
    ["http://a.example//evil.example/%2e%2e/a\\b;c", "http a.example 80 //evil.example/%2e%2e/a\\b;c"],
    ["http://a.example/@b:c", "http a.example 80 /@b:c"],
  ];
  for (const [raw, expected] of cases) {
    assert.equal(spelt(raw), expected);
  }
});

test("E21 parseAbsoluteForm() makes an empty path of OPTIONS an asterisk", () => {
  assert.equal(spelt("http://a.example", "OPTIONS"), "http a.example 80 *");
  assert.equal(spelt("http://a.example/", "OPTIONS"), "http a.example 80 /");
  assert.equal(spelt("http://a.example?x", "OPTIONS"), "http a.example 80 /?x");
});

const REFUSED: readonly (readonly [string, string])[] = [
  ["E22 empty userinfo and host", "http://@/"],
  ["E22 userinfo without host", "http://i.gj.77@/"],
  ["E22 userinfo", "http://good.example@evil.example/"],
  ["E22 password", "http://a:b@evil.example/"],
  ["E22 no host", "http:///x"],
  ["E22 nothing", "http://"],
  ["E22 query for a host", "http://?x"],
  ["E20 fragment", "http://a.example/#x"],
  ["E20 fragment after the host", "http://a.example#x"],
  ["E20 backslash in the authority", "http://a.example\\@evil.example/"],
  ["A15 percent sign", "http://a%2eexample/"],
  ["other scheme", "ftp://a.example/"],
  ["WebSocket scheme", "ws://a.example/"],
  ["no scheme", "//a.example/"],
  ["one slash", "http:/a.example/"],
  ["port 0", "http://a.example:0/"],
  ["port without digits", "http://a.example:/"],
  ["B02 short IPv4", "http://127.1/"],
  ["E20 line break", "http://a.example/\nx"],
  ["E20 line break at the end", "http://a.example/\n"],
  ["E20 blank", "http://a.example/a b"],
  ["E20 non-ASCII", "http://a.example/\xe9"],
];

for (const [name, raw] of REFUSED) {
  test(`parseAbsoluteForm() refuses: ${name}`, () => {
    assert.throws(() => parseAbsoluteForm(raw), failure("E_BAD_REQUEST", 400));
  });
}

test("parseAuthorityForm() reads host and port", () => {
  const { host, port } = parseAuthorityForm("A.example:443");
  assert.deepEqual([host, port], [{ kind: "name", name: "a.example" }, 443]);
});

const REFUSED_CONNECT: readonly (readonly [string, string])[] = [
  ["no port", "a.example"],
  ["path", "/etc"],
  ["port 0", "a.example:0"],
  ["port 99999", "a.example:99999"],
  ["no host", ":443"],
  ["URL", "https://a.example:443"],
  ["A15 percent-encoded NUL", "evil.example%00.good.example:443"],
  ["A14 NUL", "evil.example\0.good.example:443"],
  ["E22 userinfo", "a@b.example:443"],
  ["B14 zone id", "[fe80::1%25eth0]:443"],
  ["path after the port", "a.example:443/"],
  ["B02 number", "2130706433:443"],
];

for (const [name, raw] of REFUSED_CONNECT) {
  test(`parseAuthorityForm() refuses: ${name}`, () => {
    assert.throws(() => parseAuthorityForm(raw), failure("E_BAD_REQUEST", 400));
  });
}
