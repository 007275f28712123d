import assert from "node:assert/strict";
import { test } from "node:test";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import { findHooks } from "../../src/decide/find-hooks.ts";
import { ask, buildPolicy, type Entry } from "./build.ts";

function policyOf(hooks: readonly { readonly domains: readonly string[] }[], ...allowlist: readonly Entry[]) {
  return buildPolicy({ network: { allowlist }, hooks });
}

const HOOKS = [
  { domains: ["a.example.com", "*.example.com"] },
  { domains: ["10.20.0.5"] },
  { domains: ["*"] },
  { domains: ["*.example.org"] },
];

const COVERED: readonly (readonly [url: string, hooks: readonly number[]])[] = [
  ["https://a.example.com/", [0, 2]],
  ["https://b.example.com/", [0, 2]],
  ["https://example.com/", [2]],
  ["https://10.20.0.5/", [1, 2]],
  ["https://10.20.0.6/", [2]],
  ["https://printer.local/", [2]],
];

for (const [url, hooks] of COVERED) {
  test(`findHooks: ${url} is put to ${hooks.join(", ")}`, () => {
    assert.deepEqual(findHooks(ask(url).destination, policyOf(HOOKS)), hooks);
  });
}

test("findHooks: where no hook covers the destination, nobody is asked", () => {
  assert.deepEqual(
    findHooks(ask("https://a.example.net/").destination, policyOf([{ domains: ["b.example.net"] }])),
    [],
  );
  assert.deepEqual(findHooks(ask("https://a.example.net/").destination, policyOf([])), []);
});

test("asksInside: what a hook covers is inspected, and less visibility allows nothing", () => {
  const policy = policyOf([{ domains: ["a.example.com"] }], { domain: "*" });
  const outside = (url: string) => ask(url, { visibility: "destination" });
  assert.equal(decideConnection(outside("https://a.example.com/"), policy).verdict, "inspect");
  assert.equal(decideConnection(outside("https://b.example.com/"), policy).verdict, "tunnel");
  const unseen = decideExchange(outside("https://a.example.com/"), policy);
  assert.deepEqual([unseen.verdict, unseen.reason], ["deny", "needs-inspection"]);
  assert.equal(decideExchange(ask("https://a.example.com/"), policy).verdict, "allow");
});

test("asksInside: what the operator keeps shut stays so", () => {
  const entries: readonly Entry[] = [
    { domain: "a.example.com", intercept: "never" },
    { domain: "db.example.com", protocol: "tcp", ports: [5_432] },
  ];
  const policy = policyOf([{ domains: ["*"] }], ...entries);
  const shut = ask("https://a.example.com/", { visibility: "destination" });
  assert.equal(decideConnection(shut, policy).verdict, "tunnel");
  assert.equal(decideExchange(shut, policy).verdict, "allow");
  const bytes = ask("https://db.example.com:5432/", { visibility: "destination", scheme: "tcp" });
  assert.equal(decideConnection(bytes, policy).verdict, "tunnel");
  assert.equal(decideExchange(bytes, policy).verdict, "allow");
});

test("findCandidates: what the gate itself asks is no destination, whatever is listed", () => {
  const hooks = [
    { domains: ["x.example.com"], url: "https://policy.example.com/decide" },
    { domains: ["x.example.com"], url: "https://9.9.9.9:8443/" },
  ];
  const policy = policyOf(
    hooks,
    { domain: "*", ports: [443, 8_443] },
    { domain: "9.9.9.9", ports: [443, 8_443] },
  );
  const verdict = (url: string): string => decideExchange(ask(url), policy).reason;
  assert.equal(verdict("https://policy.example.com/"), "address-not-public");
  assert.equal(verdict("https://9.9.9.9:8443/"), "address-not-public");
  assert.equal(verdict("https://policy.example.com:8443/"), "rule-allows");
  assert.equal(verdict("https://9.9.9.9/"), "rule-allows");
});
