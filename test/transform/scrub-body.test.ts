import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileNeedles } from "../../src/transform/needles.ts";
import { BodyScrubber } from "../../src/transform/scrub-body.ts";

/** Of few letters, so that needles begin everywhere, overlap, and stand in each other. */
const NEEDLES = ["abababab", "babababaa", "aabbaabbaabb", "bbbbbbbb"].map((text) => Buffer.from(text));

function scrubberOf(needles: readonly Buffer[] = NEEDLES): BodyScrubber {
  const compiled = compileNeedles(needles);
  assert.ok(compiled);
  return new BodyScrubber(compiled);
}

function scrub(text: string, cuts: readonly number[]): string {
  const scrubber = scrubberOf();
  let output = "";
  let from = 0;
  for (const to of [...cuts, text.length]
    .map((cut) => Math.min(cut, text.length))
    .toSorted((a, b) => a - b)) {
    output += scrubber.push(Buffer.from(text.slice(from, to))).toString();
    from = to;
  }
  return output + scrubber.flush().toString();
}

/** The rule in its plainest words: a byte that is in any needle anywhere is a star. */
function mask(text: string): string {
  const stars = [...text];
  for (const needle of NEEDLES.map(String)) {
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) {
      stars.fill("*", at, at + needle.length);
    }
  }
  return stars.join("");
}

test("BodyScrubber masks each byte of each secret and no other, however the body is cut", () => {
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "b", "a", "c"), maxLength: 200 });
  const whole = fc.array(fc.oneof(letters, fc.constantFrom(...NEEDLES.map(String))), { maxLength: 8 });
  fc.assert(
    fc.property(
      whole.map((parts) => parts.join("")),
      fc.array(fc.nat(400), { maxLength: 20 }),
      (text, cuts) => scrub(text, cuts) === mask(text),
    ),
    { numRuns: 2_000 },
  );
});

test("BodyScrubber lets go at once of what cannot be the beginning of a secret", () => {
  const scrubber = scrubberOf([Buffer.from("secret-of-the-gate")]);
  assert.equal(scrubber.push(Buffer.from("data: 1\n\n")).toString(), "data: 1\n\n");
  assert.equal(scrubber.push(Buffer.from("data: secret-of")).toString(), "data: ");
  assert.equal(scrubber.push(Buffer.from("-them all\n")).toString(), "secret-of-them all\n");
  assert.equal(scrubber.flush().length, 0);
});

test("BodyScrubber never writes into what it was given", () => {
  const piece = Buffer.from("x abababab x");
  assert.equal(scrubberOf().push(piece).toString(), "x ******** x");
  assert.equal(piece.toString(), "x abababab x");
});

test("BodyScrubber masks what lies across the ends of a part, however that is cut", () => {
  const secret = "the-secret-of-the-gate";
  const whole = `before ${secret} between ${secret} after`;
  const compiled = compileNeedles([Buffer.from(secret)]);
  assert.ok(compiled);
  const least = 6;
  fc.assert(
    fc.property(
      fc.nat(whole.length),
      fc.nat(whole.length),
      fc.integer({ min: 1, max: 60 }),
      (one, other, size) => {
        const [from = 0, to = 0] = [one, other].toSorted((a, b) => a - b);
        const part = whole.slice(from, to);
        const scrubber = new BodyScrubber(compiled, true);
        let output = "";
        for (let at = 0; at < part.length; at += size)
          output += scrubber.push(Buffer.from(part.slice(at, at + size))).toString();
        output += scrubber.flush().toString();
        assert.equal(output.length, part.length);
        for (let at = 0; at + least <= secret.length; at++)
          assert.ok(!output.includes(secret.slice(at, at + least)), `${part} ${output}`);
        assert.ok([...output].every((char, at) => char === part[at] || char === "*"));
      },
    ),
    { numRuns: 2_000 },
  );
});
