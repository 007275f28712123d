import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isLocalhost, isSpecialUse, parseHostname, parseHostnameIdn } from "../../src/base/hostname.ts";
import type { Hostname } from "../../src/model/exchange.ts";

const LABEL_63 = "a".repeat(63);

const CANONICAL: readonly (readonly [string, string, string])[] = [
  ["A01", "API.Example.COM", "api.example.com"],
  ["A02", "api.example.com.", "api.example.com"],
  ["A11", "xn--bcher-kva.de", "xn--bcher-kva.de"],
  ["A20 below", "x.example.org", "x.example.org"],
  ["A21", "_dmarc.example.org", "_dmarc.example.org"],
  ["A22", "localhost", "localhost"],
  ["digits in front", "1and1.1and1", "1and1.1and1"],
  ["hex that is none", "example.0xg", "example.0xg"],
  ["hyphens inside", "r3---sn-x.example.com", "r3---sn-x.example.com"],
  ["one character", "a", "a"],
  [
    "the longest",
    `${`${LABEL_63}.`.repeat(3)}${"a".repeat(61)}.`,
    `${`${LABEL_63}.`.repeat(3)}${"a".repeat(61)}`,
  ],
];

for (const [id, text, expected] of CANONICAL) {
  test(`parseHostname: ${id} reads ${JSON.stringify(text.slice(0, 40))}`, () => {
    assert.equal(parseHostname(text), expected);
  });
}

const REFUSED: readonly (readonly [string, readonly string[]])[] = [
  ["A03 empty labels", ["", ".", "..", "api.example.com..", ".api.example.com", "a..b"]],
  [
    "A13 what is not ASCII",
    ["api。example。com", "api．example.com", "ａpi.com", "bücher.de", "\u212aelvin.com"],
  ],
  ["A14 NUL", ["evil.com\0.example.org", "a\0"]],
  ["A15 percent signs", ["evil.com%00.example.org", "api%2eexample.com", "%61.com"]],
  ["A16 controls and blanks", ["exa\tmple.com", "a\r\nb.com", "a b.com", " a.com", "a.com\n", "a.com\x7f"]],
  ["A20 wildcards", ["*.example.org", "*"]],
  ["A27 a name of 64 KiB", ["a".repeat(65_536), "a.".repeat(32_768), `${"a-".repeat(32_768)}!`]],
  [
    "B02 short, octal and hex addresses",
    ["127.1", "0177.0.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0", "0x"],
  ],
  ["B04 non-canonical addresses", ["0127.0.0.1", "08.0.0.1", "192.168.257"]],
  ["B06 metadata as a number", ["0xa9fea9fe", "2852039166", "0XA9FEA9FE"]],
  ["B14 zone ids", ["fe80::1%eth0", "::ffff:1.2.3.4%x.example.org"]],
  ["addresses", ["1.2.3.4", "::1", "[::1]", "example.com.1", "a.0x1."]],
  ["more than a name", ["a.com:443", "user@a.com", "a.com/x", "a.com?", "a.com#", "a.com\\", "a,b"]],
  ["hyphens at the edge of a label", ["-a.com", "a-.com", "a.-com", "a.com-"]],
  ["what is too long", [`${"a".repeat(64)}.com`, `${`${LABEL_63}.`.repeat(3)}${"a".repeat(62)}`]],
];

for (const [kind, texts] of REFUSED) {
  test(`parseHostname: ${kind} are no name`, () => {
    for (const text of texts) assert.equal(parseHostname(text), undefined, JSON.stringify(text.slice(0, 60)));
  });
}

test("parseHostname: what it reads, it reads again to the same", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."aZ09-_.xX\0é%"), maxLength: 40 }), (text) => {
      const host = parseHostname(text);
      if (host !== undefined) {
        assert.equal(parseHostname(host), host);
        assert.equal(host, text.toLowerCase().replace(/\.$/, ""));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("parseHostname: the URL standard reads the same host, so no fetch means another", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."aZ09-_.xX"), maxLength: 30 }), (text) => {
      const host = parseHostname(text);
      if (host !== undefined && !host.includes("xn--"))
        assert.equal(new URL(`http://${host}/`).hostname, host);
    }),
    { numRuns: 2_000 },
  );
});

test("parseHostnameIdn: A11 a U-label becomes its A-label", () => {
  assert.equal(parseHostnameIdn("bücher.de"), "xn--bcher-kva.de");
  assert.equal(parseHostnameIdn("BÜCHER.DE."), "xn--bcher-kva.de");
  assert.equal(parseHostnameIdn("u\u0308.de"), "xn--tda.de");
  assert.equal(parseHostnameIdn("faß.de"), "xn--fa-hia.de");
  assert.equal(parseHostnameIdn("API.Example.COM"), "api.example.com");
});

test("parseHostnameIdn: A12 a look-alike is another name", () => {
  assert.equal(parseHostnameIdn("ap\u0456.example.com"), "xn--ap-ioc.example.com");
});

test("parseHostnameIdn: A13 what maps to more than it shows is refused", () => {
  const surprising = [
    "api。example。com",
    "ü。com",
    "api．example.com",
    "ａpi.com",
    "１２.de",
    "\u212aelvin.com",
  ];
  const invisible = ["a\u00adb.com", "ü\u00ad.com", "ü\u200d.de", "ü\u200b.de", "a\ufe0f.com"];
  const percent = ["ü%41.de", "%C3%BC.de", "ü%2f.de"];
  const delimiters = [
    "ü/x",
    "ü?x",
    "ü#x",
    "ü@x",
    "ü:80",
    "ü\\x",
    "ü x.de",
    "ü\t.de",
    "ü*.de",
    "℀.com",
    "*.ü.de",
  ];
  for (const text of [...surprising, ...invisible, ...percent, ...delimiters, "", "ü..de", ".ü"]) {
    assert.equal(parseHostnameIdn(text), undefined, JSON.stringify(text));
  }
});

test("isLocalhost: localhost and what is under it", () => {
  assert.deepEqual(
    ["localhost", "a.localhost", "a.b.localhost"].map((text) => isLocalhost(host(text))),
    [true, true, true],
  );
  assert.deepEqual(
    ["notlocalhost", "localhost.com", "x.notlocalhost"].map((text) => isLocalhost(host(text))),
    [false, false, false],
  );
});

test("isSpecialUse: A22 single labels and the suffixes that each network has for itself", () => {
  for (const text of [
    "localhost",
    "metadata",
    "foo.localhost",
    "x.local",
    "x.internal",
    "x.home.arpa",
    "home.arpa",
  ]) {
    assert.equal(isSpecialUse(host(text)), true, text);
  }
  for (const text of [
    "example.com",
    "local.example.com",
    "xlocal.com",
    "x.notlocal",
    "arpa.home",
    "athome.arpa",
  ]) {
    assert.equal(isSpecialUse(host(text)), false, text);
  }
});

function host(text: string): Hostname {
  const parsed = parseHostname(text);
  assert.ok(parsed !== undefined, text);
  return parsed;
}
