import assert from "node:assert/strict";
import { test } from "node:test";
import { findCandidates } from "../../src/decide/candidates.ts";
import type { Policy } from "../../src/decide/policy.ts";
import { ask, buildPolicy } from "./build.ts";

const POLICY = buildPolicy({
  network: {
    denylist: [
      { id: "no-local", domain: "*.localhost" },
      { id: "no-literal", domain: "127.0.0.9" },
      { id: "no-25", domain: "mail.example.com", ports: [25] },
    ],
    allowlist: [
      { id: "one", domain: "a.example.com" },
      { id: "two", domain: "a.example.com", ports: [8443] },
      { domain: "*" },
      { domain: "10.20.0.5" },
      { domain: "localhost" },
    ],
  },
  sandboxes: [{ id: "s", network: { allowlist: [{ domain: "s.example.com" }] } }, { id: "off" }],
  upstream: { allow_ranges: ["10.20.0.0/16"] },
});

test("findCandidates: all entries of the winning pattern, whatever their ports", () => {
  assert.deepEqual(found("https://a.example.com:1/"), ["one", "two"]);
  assert.deepEqual(found("https://b.example.com/"), ["*"]);
  assert.deepEqual(found("https://10.20.0.5/"), ["10.20.0.5"]);
  assert.deepEqual(found("https://93.184.216.34/"), []);
});

test("findCandidates: the denylist speaks before everything that no rule opens", () => {
  assert.equal(found("http://x.localhost/"), "rule-denies no-local");
  assert.equal(found("http://127.0.0.9/"), "rule-denies no-literal");
  assert.equal(found("https://mail.example.com:25/"), "rule-denies no-25");
  assert.deepEqual(found("https://mail.example.com/"), ["*"]);
});

test("findCandidates: A22 localhost is loopback even by its own entry", () => {
  assert.equal(found("http://localhost/"), "loopback undefined");
});

test("findCandidates: B16 a literal in an opened range needs an entry of its own", () => {
  assert.equal(found("https://10.20.0.6/"), "address-not-public undefined");
  assert.equal(found("https://10.0.0.1/"), "address-not-public undefined");
});

test("findCandidates: each sandbox has its own network, and a sandbox that is gone has none", () => {
  assert.deepEqual(found("https://s.example.com/", "s"), ["s.example.com"]);
  assert.deepEqual(found("https://a.example.com/", "s"), []);
  assert.equal(found("https://s.example.com/", "off"), "network-disabled undefined");
  assert.equal(found("https://s.example.com/", "gone"), "identity-unknown undefined");
});

function found(url: string, sandbox?: string, policy: Policy = POLICY): string | readonly string[] {
  const candidates = findCandidates(ask(url, { client: { sandbox, address: "10.80.0.2" } }), policy);
  if (candidates.kind === "rules") return candidates.rules.map(({ id }) => id);
  assert.equal(candidates.decision.verdict, "deny");
  return `${candidates.decision.reason} ${candidates.decision.rule}`;
}

test("findCandidates: a denylist that evaluate_only lets pass opens no name of the loopback", () => {
  for (const mode of ["enforce", "evaluate_only"] as const) {
    const policy = buildPolicy({
      mode,
      network: { allowlist: [{ domain: "*" }], denylist: [{ domain: "localhost" }, { domain: "a.example" }] },
    });
    const found = findCandidates(ask("https://localhost/"), policy);
    assert.ok(found.kind === "decided");
    assert.equal(found.decision.verdict, "deny");
    assert.equal(found.decision.reason, "rule-denies");
    const other = findCandidates(ask("https://a.example/"), policy);
    assert.ok(other.kind === "decided");
    assert.equal(other.decision.verdict, mode === "enforce" ? "deny" : "allow");
  }
});
