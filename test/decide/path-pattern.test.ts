import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compilePath } from "../../src/decide/path-pattern.ts";

const MATCHES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ["/repos/my-org/.*", ["/repos/my-org/", "/repos/my-org/a/b"], ["/repos/my-org", "/v1/repos/my-org/a", ""]],
  ["/user", ["/user"], ["/user/", "/users", "/a/user"]],
  ["/(a|b)", ["/a", "/b"], ["/a|b", "/c", "/ab"]],
  ["/a|/b", ["/a", "/b"], ["/ax", "x/b"]],
  ["^/a$", ["/a"], ["/ab", "b/a"]],
  ["/v[0-9]+/x", ["/v1/x", "/v10/x"], ["/v/x", "/vx/x"]],
  ["(?i)/a", ["/a", "/A"], ["/b"]],
  ["/a\\.b", ["/a.b"], ["/axb"]],
  [".*", ["", "/", "/a"], []],
  ["", [""], ["/"]],
  ["/a%2F.*", ["/a%2Fb"], ["/a/b"]],
];

for (const [source, yes, no] of MATCHES) {
  test(`compilePath: ${source} is matched against the whole path`, () => {
    for (const path of yes) assert.equal(matcher(source)(path), true, path);
    for (const path of no) assert.equal(matcher(source)(path), false, path);
  });
}

const REFUSED: readonly (readonly [string, RegExp])[] = [
  ["/(?=x)", /^Look-ahead and look-behind/],
  ["/(?!x)", /^Look-ahead and look-behind/],
  ["/(?<=x)", /^Look-ahead and look-behind/],
  ["/(?<!x)", /^Look-ahead and look-behind/],
  ["/(a)\\1", /^A backreference/],
  ["/(?<n>a)\\k<n>", /^A backreference/],
  ["/a*+", /^Possessive/],
  ["/[a]{2000}", /^A repetition may count to 1000/],
  ["/(", /^Not a valid RE2 pattern \(missing \)/],
  ["/a)|(?:b", /^Not a valid RE2 pattern/],
  ["/a\\", /^Not a valid RE2 pattern/],
  ["/\\Qa", /^Not a valid RE2 pattern/],
  ["/[", /^Not a valid RE2 pattern/],
  [`/(${"a".repeat(4_096)})`, /^A pattern has 4096 characters at most/],
];

for (const [source, problem] of REFUSED) {
  test(`compilePath: ${source.slice(0, 20)} is refused in words`, () => {
    const compiled = compilePath(source);
    assert.equal(compiled.ok, false);
    assert.match(compiled.problem, problem);
  });
}

test("compilePath: A27 no pattern takes more than linear time", () => {
  const start = process.cpuUsage();
  assert.equal(matcher("/(a+)+b")(`/${"a".repeat(30_000)}`), false);
  assert.ok(process.cpuUsage(start).user < 1_000_000);
});

test("compilePath: a path longer than the scratch is matched whole", () => {
  const path = `/${"a".repeat(10_000)}`;
  assert.equal(matcher("/(a+)")(path), true);
  assert.equal(matcher("/(a+)")(`${path}b`), false);
});

test("compilePath: plain patterns mean what RE2 says they mean", () => {
  const text = fc.string({ unit: fc.constantFrom(..."/ab.*-_~"), maxLength: 6 });
  fc.assert(
    fc.property(fc.constantFrom("/a", "/a.*", ".*", "", "/a-b.*", "a/"), text, (source, path) => {
      // The group keeps the pattern from being read as plain text.
      assert.equal(matcher(source)(path), matcher(`(?:${source})`)(path));
    }),
    { numRuns: 2_000 },
  );
});

function matcher(source: string): (path: string) => boolean {
  const compiled = compilePath(source);
  assert.equal(compiled.ok, true, source);
  return compiled.matches;
}
