import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FIELD_BYTES, quote } from "../../src/record/escape.ts";

/** Any UTF-16, lone surrogates included, with what breaks lines and terminals made likely. */
const anyText = fc.array(
  fc.oneof(
    fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
    fc.constantFrom(
      "\n",
      "\r",
      "\u001b[2J",
      "\u2028",
      "\u2029",
      "\u202e",
      "\u0085",
      "\u007f",
      '"',
      "\\",
      "😀",
      "a",
    ),
  ),
  { maxLength: 1_500 },
);

test("quote leaves printable ASCII as it is", () => {
  assert.equal(quote("api.example.com/a?b=[c]~ !#"), '"api.example.com/a?b=[c]~ !#"');
  assert.equal(quote(""), '""');
});

test("quote escapes whatever could break a line, a string or a terminal", () => {
  assert.equal(
    quote('"\\\n\u001b\u007f\u009b\u2028\u2029\u202e\ud800é'),
    '"\\"\\\\\\u000a\\u001b\\u007f\\u009b\\u2028\\u2029\\u202e\\ud800\\u00e9"',
  );
});

test("quote writes text of any kind as printable ASCII that JSON reads back, cut or whole", () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 6, max: 2_000 }), (units, limit) => {
      const text = units.join("");
      const quoted = quote(text, limit);
      assert.match(quoted, /^"[ -~]*"$/);
      assert.ok(quoted.length - 2 <= limit);
      const read = JSON.parse(quoted) as string;
      if (read !== text) {
        assert.ok(read.endsWith("…") && text.startsWith(read.slice(0, -1)));
      }
    }),
  );
});

test("quote cuts no escape and no surrogate pair", () => {
  for (let limit = 6; limit < 60; limit += 1) {
    const read = JSON.parse(quote("ab😀\n\n😀😀😀", limit)) as string;
    assert.ok(read.isWellFormed(), `${limit}`);
  }
});

test("quote keeps a text of exactly the limit and marks one that is longer", () => {
  const full = "a".repeat(FIELD_BYTES);
  assert.equal(quote(full), `"${full}"`);
  assert.equal(quote(`${full}a`), `"${"a".repeat(FIELD_BYTES - 6)}\\u2026"`);
});
