/** Secrets are taken out of texts in every usual spelling, and innocent text stays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRedactor } from "../../src/secrets/redactor.ts";

const SECRET = "s3cr3t+/=v4lue\u00e9";

function holding(...secrets: readonly string[]) {
  const redactor = createRedactor(() => 0);
  for (const [index, secret] of secrets.entries()) redactor.hold(String(index), secret);
  return redactor;
}

test("redact: the secret goes, wherever and however often it stands", () => {
  const redactor = holding(SECRET);
  assert.equal(redactor.redact(`${SECRET} a ${SECRET}${SECRET}`), "[redacted] a [redacted][redacted]");
  assert.equal(redactor.redact("nothing here"), "nothing here");
  assert.equal(redactor.redact(""), "");
});

test("redact: nothing is held, nothing goes", () => {
  assert.equal(createRedactor(() => 0).redact(SECRET), SECRET);
});

test("redact: base64 of the secret goes, alone and behind a user's name of any length", () => {
  const redactor = holding(SECRET);
  for (const before of ["", "u:", "us:", "user:", "x-oauth-basic:"]) {
    for (const after of ["", "!", "!!"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const encoded = Buffer.from(before + SECRET + after, "latin1").toString(encoding);
        const left = redactor.redact(`Basic ${encoded}.`);
        assert.match(left, /^Basic .{0,20}\[redacted\].{0,6}\.$/);
        assert.ok(!Buffer.from(left, "base64").includes(SECRET.slice(2, 8)));
      }
    }
  }
});

test("redact: JSON and URL spellings of the secret go", () => {
  const quoted = 'pass"word\\with quotes';
  const redactor = holding(quoted);
  assert.equal(redactor.redact(JSON.stringify({ quoted })), '{"quoted":"[redacted]"}');
  assert.equal(redactor.redact(`?k=${encodeURIComponent(quoted)}`), "?k=[redacted]");
});

test("redact: what is shorter than eight characters stays", () => {
  assert.equal(holding("Bearer", "1234567").redact("Bearer 1234567"), "Bearer 1234567");
  assert.equal(holding("12345678").redact("Bearer 12345678"), "Bearer [redacted]");
});

test("redact: of secrets that begin alike the longer goes whole", () => {
  assert.equal(holding("abcdefgh", "abcdefghij").redact("abcdefghij abcdefgh!"), "[redacted] [redacted]!");
});

test("redact: secrets that overlap go as one", () => {
  assert.equal(holding("abcdefgh", "cdefghijkl").redact("-abcdefghijkl-"), "-[redacted]-");
  assert.equal(holding("abcdefgh", "efghijkl", "ijklmnop").redact("abcdefghijklmnop"), "[redacted]");
});

test("hold: what is replaced is remembered for ten minutes", () => {
  let time = 0;
  const redactor = createRedactor(() => time);
  redactor.hold("a", "old-secret");
  redactor.hold("a", "new-secret");
  assert.equal(redactor.redact("old-secret new-secret"), "[redacted] [redacted]");
  time = 599_999;
  assert.equal(redactor.redact("old-secret new-secret"), "[redacted] [redacted]");
  time = 600_000;
  assert.equal(redactor.redact("old-secret new-secret"), "old-secret [redacted]");
});

test("hold: what went away is remembered too, and what another still has stays", () => {
  let time = 0;
  const redactor = createRedactor(() => time);
  redactor.hold("a", "one-secret");
  redactor.hold("b", "one-secret");
  redactor.hold("c", "two-secret");
  redactor.keepOnly(new Set(["b"]));
  assert.equal(redactor.redact("one-secret two-secret"), "[redacted] [redacted]");
  time = 600_000;
  assert.equal(redactor.redact("one-secret two-secret"), "[redacted] two-secret");
});

test("redact: no text that holds a secret holds it afterwards", () => {
  const secret = fc.string({ minLength: 8, maxLength: 20, unit: fc.constantFrom("a", "b", "+") });
  const text = fc.string({ maxLength: 60, unit: fc.constantFrom("a", "b", "+", "/", "-") });
  fc.assert(
    fc.property(fc.array(secret, { minLength: 1, maxLength: 4 }), text, text, (secrets, before, after) => {
      const redactor = holding(...secrets);
      for (const one of secrets) {
        const left = redactor.redact(before + one + after);
        for (const other of secrets) assert.ok(!left.includes(other));
      }
    }),
    { numRuns: 500 },
  );
});

test("redact: a thousand secrets cost a line little", () => {
  const redactor = holding(...Array.from({ length: 1_000 }, (_, index) => `secret-number-${index}-x`));
  const line = "2026 exchange denied host.example.com /some/path no-rule-matched ".repeat(5);
  redactor.redact(line);
  const started = process.cpuUsage();
  for (let run = 0; run < 1_000; run++) redactor.redact(line);
  const { user, system } = process.cpuUsage(started);
  assert.ok(user + system < 500_000, `${(user + system) / 1_000} us a line`);
});
