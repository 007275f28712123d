import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isSpecialUse, parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { buildHostTrie, findAddress, findEvery, findMostSpecific } from "../../src/decide/host-trie.ts";
import type { Hostname } from "../../src/model/exchange.ts";
import type { PatternSource } from "../../src/model/pattern.ts";
import { known } from "./build.ts";

test("findMostSpecific: entries of one pattern stay in their order", () => {
  const trie = build(["a.com", "*.com", "a.com", "*", "*.com", "*"]);
  assert.deepEqual(findMostSpecific(trie, host("a.com")), [0, 2]);
  assert.deepEqual(findMostSpecific(trie, host("b.com")), [1, 4]);
  assert.deepEqual(findMostSpecific(trie, host("b.org")), [3, 5]);
  assert.equal(trie.size, 6);
});

test("findMostSpecific: A27 the longest name walks no further than the patterns go", () => {
  const trie = build(["*.com", "*.b.com"]);
  assert.deepEqual(findMostSpecific(trie, host(`${"a.".repeat(120)}b.com`)), [1]);
  assert.deepEqual(findMostSpecific(trie, host(`${"a.".repeat(120)}c.org`)), []);
});

test("findMostSpecific: prototype members are labels like others", () => {
  const trie = build(["*.constructor", "*.__proto__.com", "constructor.com"]);
  assert.deepEqual(findMostSpecific(trie, host("a.constructor")), [0]);
  assert.deepEqual(findMostSpecific(trie, host("a.__proto__.com")), [1]);
  assert.deepEqual(findMostSpecific(trie, host("constructor.com")), [2]);
  assert.deepEqual(findMostSpecific(trie, host("__proto__.org")), []);
  assert.deepEqual(findMostSpecific(trie, host("hasownproperty")), []);
});

test("findEvery: every pattern that covers the name, the widest first", () => {
  const trie = build(["b.a.com", "*", "*.a.com", "*.com", "*.b.a.com", "x.com"]);
  assert.deepEqual(findEvery(trie, host("b.a.com")), [1, 3, 2, 0]);
  assert.deepEqual(findEvery(trie, host("a.com")), [1, 3]);
});

test("findAddress: a literal has its own entries alone", () => {
  const trie = build(["*", "*.1", "10.0.0.1", "10.0.0.1", "::1"]);
  const find = (text: string): readonly number[] => findAddress(trie, known(parseIpAddress(text), text));
  assert.deepEqual(find("10.0.0.1"), [2, 3]);
  assert.deepEqual(find("::ffff:10.0.0.1"), [2, 3]);
  assert.deepEqual(find("0:0::1"), [4]);
  assert.deepEqual(find("10.0.0.2"), []);
});

const labels = fc.constantFrom("a", "b", "com", "local", "internal", "home", "arpa");
const names = fc.array(labels, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("."));
const patterns = fc.oneof(
  names,
  names.map((name) => `*.${name}`),
  fc.constant("*"),
);

test("findMostSpecific: agrees with a matcher that looks at every pattern", () => {
  fc.assert(
    fc.property(fc.array(patterns, { maxLength: 12 }), names, (texts, name) => {
      assert.deepEqual(findMostSpecific(build(texts), host(name)), mostSpecificByHand(texts, name));
    }),
    { numRuns: 3_000 },
  );
});

test("findEvery: agrees with a matcher that looks at every pattern", () => {
  fc.assert(
    fc.property(fc.array(patterns, { maxLength: 12 }), names, (texts, name) => {
      const expected = texts.flatMap((text, index) => (covers(text, name) ? [index] : []));
      assert.deepEqual(
        [...findEvery(build(texts), host(name))].sort((a, b) => a - b),
        expected,
      );
    }),
    { numRuns: 1_000 },
  );
});

function mostSpecificByHand(texts: readonly string[], name: string): readonly number[] {
  const open = texts.filter((text) => text === name || (covers(text, name) && !isSpecialUse(host(name))));
  const rank = (text: string): number => (text === name ? 1_000 : text.length);
  const best = open.toSorted((a, b) => rank(b) - rank(a)).at(0);
  return texts.flatMap((text, index) => (text === best ? [index] : []));
}

function covers(pattern: string, name: string): boolean {
  return pattern === "*" || pattern === name || (pattern.startsWith("*.") && name.endsWith(pattern.slice(1)));
}

function build(texts: readonly string[]): ReturnType<typeof buildHostTrie<number>> {
  return buildHostTrie(texts.map((text, index) => [pattern(text), index] as const));
}

function pattern(text: string): PatternSource {
  if (text === "*") return { kind: "any" };
  if (text.startsWith("*.")) return { kind: "wildcard", base: text.slice(2) };
  const address = parseIpAddress(text);
  return address === undefined ? { kind: "exact", host: text } : { kind: "address", address };
}

function host(text: string): Hostname {
  return known(parseHostname(text), text);
}
