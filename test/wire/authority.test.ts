import assert from "node:assert/strict";
import { test } from "node:test";
import { type Authority, parseAuthority, parseAuthorityWithPort } from "../../src/wire/authority.ts";
import { failure } from "./support.ts";

function spelt({ host, port }: Authority): string {
  return host.kind === "name" ? `name ${host.name} ${port}` : `address ${host.address.text} ${port}`;
}

const READ: readonly (readonly [string, string, string])[] = [
  ["a plain name", "api.example.com", "name api.example.com 443"],
  ["A01 upper case", "API.Example.COM:443", "name api.example.com 443"],
  ["A02 trailing dot", "api.example.com.:8443", "name api.example.com 8443"],
  ["A11 A-label", "xn--bcher-kva.de", "name xn--bcher-kva.de 443"],
  ["A21 underscore", "_dmarc.example.org", "name _dmarc.example.org 443"],
  ["A22 single label", "localhost:1", "name localhost 1"],
  ["highest port", "a.example:65535", "name a.example 65535"],
  ["B01 IPv4", "93.184.216.34", "address 93.184.216.34 443"],
  ["B08 mapped IPv4", "[::ffff:7f00:1]", "address 127.0.0.1 443"],
  ["B07 IPv6", "[FD00:EC2:0::254]:80", "address fd00:ec2::254 80"],
];

for (const [name, text, expected] of READ) {
  test(`parseAuthority() reads: ${name}`, () => {
    assert.equal(spelt(parseAuthority(text, 443)), expected);
  });
}

const REFUSED: readonly (readonly [string, string])[] = [
  ["A03 two dots at the end", "api.example.com.."],
  ["A03 a dot first", ".api.example.com"],
  ["A03 an empty label", "a..b"],
  ["A08 a dot alone", "."],
  ["A13 ideographic dots", "api\u3002example\u3002com"],
  ["A14 NUL", "evil.com\0.example.org"],
  ["A15 percent sign", "api%2eexample.com"],
  ["A16 tab", "exa\tmple.com"],
  ["A16 line break", "example.com\r\n"],
  ["A20 wildcard", "*.example.org"],
  ["B02 127.1", "127.1"],
  ["B02 octal", "0177.0.0.1"],
  ["B02 hex", "0x7f.1"],
  ["B02 one hex number", "0x7f000001"],
  ["B02 one number", "2130706433"],
  ["B02 zero", "0"],
  ["B02 0x", "0x"],
  ["B04 leading zero", "0127.0.0.1"],
  ["B04 08", "08.0.0.1"],
  ["B04 three parts", "192.168.257"],
  ["B04 name that ends in a number", "a.example.1"],
  ["B14 zone id", "[fe80::1%eth0]"],
  ["B14 escaped zone id", "[fe80::1%25eth0]"],
  ["IPv6 without brackets", "::1"],
  ["IPv6 without brackets, with a port", "::1:443"],
  ["IPv4 in brackets", "[1.2.3.4]"],
  ["name in brackets", "[abc]"],
  ["no IPv6 in the brackets", "[:::]"],
  ["half a bracket", "[::1"],
  ["text after the brackets", "[::1]a:443"],
  ["nothing", ""],
  ["port alone", ":443"],
  ["E22 userinfo", "a@b.example"],
  ["E22 empty userinfo", "@b.example"],
  ["port without digits", "a.example:"],
  ["port 0", "a.example:0"],
  ["port with a leading zero", "a.example:0443"],
  ["port 65536", "a.example:65536"],
  ["port 99999", "a.example:99999"],
  ["port of six digits", "a.example:100000"],
  ["port with a sign", "a.example:+443"],
  ["two ports", "a.example:1:2"],
  ["path", "a.example/x"],
  ["list", "a.example,b.example"],
  ["A27 64 KiB of name", "a.".repeat(32_768)],
];

for (const [name, text] of REFUSED) {
  test(`parseAuthority() refuses: ${name}`, () => {
    assert.throws(() => parseAuthority(text, 443), failure("E_BAD_REQUEST", 400));
  });
}

test("parseAuthorityWithPort() needs the port", () => {
  assert.equal(spelt(parseAuthorityWithPort("a.example:22")), "name a.example 22");
  assert.throws(() => parseAuthorityWithPort("a.example"), failure("E_BAD_REQUEST", 400));
});
