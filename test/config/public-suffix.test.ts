/** Who else can own names under a wildcard: the list as it ships, walked both up and down. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { outsidersUnder } from "../../src/config/public-suffix.ts";

const CASES: readonly (readonly [base: string, kind: string, suffix?: RegExp])[] = [
  ["example.com", "none"],
  ["corp.example.com", "none"],
  ["example.co.uk", "none"],
  ["my-org.github.io", "none"],
  ["bucket.s3.amazonaws.com", "none"],
  ["com", "public", /^com$/],
  ["co.uk", "public", /^co\.uk$/],
  // Itself a suffix by rule, and with others below it.
  ["uk", "public", /^uk$/],
  ["github.io", "private", /^github\.io$/],
  ["vercel.app", "private", /^vercel\.app$/],
  ["s3.amazonaws.com", "private", /^s3\.amazonaws\.com$/],
  // No suffix itself: they lie below.
  ["amazonaws.com", "private", /\.amazonaws\.com$/],
  ["cloudfunctions.net", "private", /^cloudfunctions\.net$/],
  // A rule `*.ck` makes every name there a suffix, and `!www.ck` excepts one.
  ["anything.ck", "public", /^anything\.ck$/],
  ["www.ck", "none"],
  ["city.kawasaki.jp", "none"],
  ["other.kawasaki.jp", "public", /^other\.kawasaki\.jp$/],
  // Not on the list: the prevailing rule is `*`.
  ["corp", "public", /^corp$/],
  ["svc.corp", "none"],
  ["xn--p1ai", "public", /^xn--p1ai$/],
];

for (const [base, kind, suffix] of CASES) {
  test(`outsidersUnder: below ${base} ${kind === "none" ? "nobody else owns names" : `is ${kind} ground`}`, () => {
    const found = outsidersUnder(base);
    assert.equal(found.kind, kind);
    if (found.kind !== "none") assert.match(found.suffix, suffix ?? /^$/);
  });
}

test("outsidersUnder: the walk and the package's own look-up agree on what the list holds", () => {
  // If the package laid its list out in another way, these would be names of nothing.
  for (const base of ["compute.amazonaws.com", "elb.amazonaws.com", "us-east-1.amazonaws.com"]) {
    assert.equal(outsidersUnder(base).kind, "private", base);
  }
});
