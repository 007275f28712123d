import assert from "node:assert/strict";
import { test } from "node:test";
import { bypassesAddress, bypassesPattern, wayTo } from "../../src/base/bypass.ts";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress, parseRange } from "../../src/base/ip.ts";
import type { Destination, Hostname, IpAddress } from "../../src/model/exchange.ts";
import type { PatternSource } from "../../src/model/pattern.ts";
import type { AddressRange, BypassSource } from "../../src/model/policy.ts";

const EXACT: BypassSource = { kind: "exact", host: "a.example" };
const BELOW: BypassSource = { kind: "wildcard", base: "b.example" };
const ANY: BypassSource = { kind: "any" };
const RANGE: BypassSource = { kind: "range", range: parseRange("10.0.0.0/8") as AddressRange };
const LIST = [EXACT, BELOW, RANGE];

const HOSTS = new Map([["here.example", []]]);

test("wayTo: a name by names, an address by ranges, the rest by the parent proxy", () => {
  const ways: readonly (readonly [string, string])[] = [
    ["a.example", "direct"],
    ["x.a.example", "vetted"],
    ["b.example", "vetted"],
    ["x.y.b.example", "direct"],
    ["xb.example", "vetted"],
    ["10.1.2.3", "direct"],
    ["11.1.2.3", "vetted"],
  ];
  for (const [host, way] of ways)
    assert.equal(wayTo({ bypass: LIST, resolve: "local" }, HOSTS, at(host)), way, host);
  assert.equal(wayTo({ bypass: [ANY], resolve: "local" }, HOSTS, at("c.example")), "direct");
  assert.equal(wayTo({ bypass: [ANY], resolve: "local" }, HOSTS, at("2a0f::1")), "direct");
});

test("wayTo: a parent proxy that resolves gets names that have no answer here, and no address", () => {
  const parent = { bypass: LIST, resolve: "parent" } as const;
  assert.equal(wayTo(parent, HOSTS, at("c.example")), "named");
  assert.equal(wayTo(parent, HOSTS, at("here.example")), "vetted");
  assert.equal(wayTo(parent, HOSTS, at("11.0.0.1")), "vetted");
  assert.equal(wayTo(parent, HOSTS, at("a.example")), "direct");
});

test("bypassesAddress: names say nothing of an address", () => {
  assert.equal(bypassesAddress([EXACT, BELOW], parseIpAddress("10.0.0.1") as IpAddress), false);
});

test("bypassesPattern: only where every name of the pattern goes past", () => {
  const cases: readonly (readonly [PatternSource, readonly BypassSource[], boolean])[] = [
    [{ kind: "any" }, LIST, false],
    [{ kind: "any" }, [ANY], true],
    [{ kind: "wildcard", base: "a.example" }, LIST, false],
    [{ kind: "wildcard", base: "b.example" }, LIST, true],
    [{ kind: "wildcard", base: "x.b.example" }, LIST, true],
    [{ kind: "wildcard", base: "xb.example" }, LIST, false],
    [{ kind: "exact", host: "a.example" }, LIST, true],
    [{ kind: "exact", host: "c.example" }, LIST, false],
    [{ kind: "address", address: parseIpAddress("10.9.9.9") as IpAddress }, LIST, true],
    [{ kind: "address", address: parseIpAddress("11.9.9.9") as IpAddress }, LIST, false],
  ];
  for (const [pattern, list, expected] of cases) {
    assert.equal(bypassesPattern(list, pattern), expected, JSON.stringify(pattern));
  }
});

function at(text: string): Destination {
  const address = parseIpAddress(text);
  if (address !== undefined) return { kind: "address", address, port: 443 };
  return { kind: "name", host: parseHostname(text) as Hostname, port: 443 };
}
