/** Domains: patterns in canonical form, and the right spelling of wrong ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseDomain, patternKey } from "../../src/config/domain.ts";

/** What is written, and the key of the pattern that it means. */
const TAKEN: readonly (readonly [string, string])[] = [
  ["api.example.com", "api.example.com"],
  ["API.Example.COM", "api.example.com"],
  ["api.example.com.", "api.example.com"],
  ["localhost", "localhost"],
  ["_dmarc.example.org", "_dmarc.example.org"],
  ["b\u00fccher.de", "xn--bcher-kva.de"],
  ["B\u00dcCHER.de", "xn--bcher-kva.de"],
  ["fa\u00df.de", "xn--fa-hia.de"],
  ["xn--bcher-kva.de", "xn--bcher-kva.de"],
  ["*", "*"],
  ["*.example.org", "*.example.org"],
  ["*.EXAMPLE.org.", "*.example.org"],
  ["*.com", "*.com"],
  ["*.b\u00fccher.de", "*.xn--bcher-kva.de"],
  ["93.184.216.34", "[93.184.216.34]"],
  ["2001:DB8::1", "[2001:db8::1]"],
  ["[2001:db8::1]", "[2001:db8::1]"],
  ["[::ffff:1.2.3.4]", "[1.2.3.4]"],
];

for (const [text, key] of TAKEN) {
  test(`parseDomain: ${text} is ${key}`, () => {
    const parsed = parseDomain(text);
    assert.ok(parsed.ok);
    assert.equal(patternKey(parsed.pattern), key);
  });
}

const STAR = "A `*` stands alone or as the whole first label";
const URL_LIKE = "A domain is a name alone, without scheme, user or path";
const PORT = "A domain has no port; ports stand in `ports`";
const NUMBER = "A domain cannot end in a number unless it is an address in plain decimal";
const REFUSED: readonly (readonly [string, string])[] = [
  ["", "This is not a hostname"],
  [".", "This is not a hostname"],
  ["a..b", "This is not a hostname"],
  [".example.com", "This is not a hostname"],
  ["api.example.com..", "This is not a hostname"],
  ["-a.example.com", "This is not a hostname"],
  ["a b.example.com", "This is not a hostname"],
  ["a\0.example.com", "This is not a hostname"],
  ["a\u3002example.com", "This is not a hostname; write `a.example.com`"],
  ["\uff41pi.example.com", "This is not a hostname; write `api.example.com`"],
  ["*.", "A domain `*.` lacks its name; every host is `*`"],
  ["*..", "A domain `*.` lacks its name; every host is `*`"],
  ["*.10.0.0.1", "An address cannot follow `*.`"],
  ["a.*.com", STAR],
  ["ex*mple.com", STAR],
  ["**", STAR],
  ["*example.com", `${STAR}; write \`*.example.com\``],
  ["**.example.com", `${STAR}; write \`*.example.com\``],
  ["*.*.example.com", `${STAR}; write \`*.example.com\``],
  ["10.0.0.0/8", "A domain cannot be a range; list its addresses one by one"],
  ["https://api.example.com/v1", `${URL_LIKE}; write \`api.example.com\``],
  ["https://user:hunter22@api.example.com/", `${URL_LIKE}; write \`api.example.com\``],
  ["api.example.com/v1", `${URL_LIKE}; write \`api.example.com\``],
  ["*.example.com/v1", `${URL_LIKE}; write \`*.example.com\``],
  ["https://", URL_LIKE],
  ["api.example.com:8443", `${PORT}; write \`api.example.com\``],
  ["*.example.com:443", `${PORT}; write \`*.example.com\``],
  ["[2001:db8::1]:443", `${PORT}; write \`[2001:db8::1]\``],
  ["0177.0.0.1", `${NUMBER}; write \`127.0.0.1\``],
  ["127.1", `${NUMBER}; write \`127.0.0.1\``],
  ["0x7f000001", `${NUMBER}; write \`127.0.0.1\``],
  ["2130706433", `${NUMBER}; write \`127.0.0.1\``],
  ["1.2.3.256", NUMBER],
  ["example.123", NUMBER],
  ["fe80::1%eth0", "A domain has no percent sign: neither an escape nor a zone id"],
  ["a%2ecom", "A domain has no percent sign: neither an escape nor a zone id"],
  [`${"a".repeat(64)}.com`, "This is not a hostname"],
];

for (const [text, problem] of REFUSED) {
  test(`parseDomain: ${JSON.stringify(text).slice(0, 40)} is refused`, () => {
    assert.deepEqual(parseDomain(text), { ok: false, problem });
  });
}

test("parseDomain: a pattern written as its own key is the same pattern", () => {
  const label = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}[a-z0-9]$/);
  fc.assert(
    fc.property(
      fc.constantFrom("", "*."),
      fc.array(label, { minLength: 1, maxLength: 4 }),
      (star, labels) => {
        const text = star + labels.join(".");
        const parsed = parseDomain(text);
        // Some generated labels look like A-labels, and are none.
        if (parsed.ok) assert.equal(patternKey(parsed.pattern), text);
      },
    ),
  );
});

test("parseDomain: any text is taken or refused, and never throws", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
      const parsed = parseDomain(text);
      if (!parsed.ok) assert.notEqual(parsed.problem, "");
    }),
  );
});
