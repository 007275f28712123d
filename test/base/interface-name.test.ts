/** Names of interfaces and patterns of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isInterfaceName, isInterfacePattern, matchesInterface } from "../../src/base/interface-name.ts";

test("isInterfaceName: at most 15 characters that need no quoting", () => {
  for (const name of ["lo", "eth0", "br-12ab34cd56ef", "veth.7", "tap_0", "ve-box@x", "a"]) {
    assert.equal(isInterfaceName(name), true, name);
  }
  for (const name of ["", ".", "..", "sixteen-letters-", "a b", 'a"', "a*", "a/b", "a\n", "ä", "a;b", "a{"]) {
    assert.equal(isInterfaceName(name), false, name);
  }
});

test("isInterfacePattern: a name, or the beginning of one", () => {
  for (const pattern of ["sbx0", "veth-*", "v*"]) assert.equal(isInterfacePattern(pattern), true, pattern);
  for (const pattern of ["*", "", "a*b", "**", "*a"])
    assert.equal(isInterfacePattern(pattern), false, pattern);
});

test("matchesInterface: by the whole name, or by its beginning", () => {
  assert.equal(matchesInterface(["sbx0", "veth-*"], "sbx0"), true);
  assert.equal(matchesInterface(["sbx0", "veth-*"], "veth-7"), true);
  assert.equal(matchesInterface(["sbx0", "veth-*"], "veth-"), true);
  for (const name of ["sbx01", "sbx", "veth", "eth0", ""]) {
    assert.equal(matchesInterface(["sbx0", "veth-*"], name), false, name);
  }
  assert.equal(matchesInterface([], "sbx0"), false);
});
