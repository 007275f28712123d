/** What a lookup is worth: allowed where any port of the name may be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { decideName, type NameDecision } from "../../src/decide/decide-name.ts";
import { buildPolicy, type Settings } from "./build.ts";

function decide(text: string, settings: Settings, sandbox?: string): NameDecision {
  const host = parseHostname(text);
  assert.ok(host);
  return decideName(host, { sandbox, address: "" }, buildPolicy(settings));
}

const NETWORK = {
  allowlist: [
    { id: "db", domain: "db.test", ports: [5432], protocol: "tcp" as const },
    { domain: "*.a.test" },
  ],
  denylist: [{ domain: "x.a.test" }, { domain: "y.a.test", ports: [25] }],
};

test("decideName: a name of any entry is allowed, whatever its ports", () => {
  assert.deepEqual(decide("db.test", { network: NETWORK }), {
    verdict: "allow",
    reason: "rule-allows",
    rule: "db",
    would: undefined,
  });
  // Denied on one port is not denied.
  assert.equal(decide("y.a.test", { network: NETWORK }).verdict, "allow");
});

test("decideName: all others are denied as a connection would be", () => {
  for (const [name, reason] of [
    ["other.test", "no-rule-matched"],
    ["x.a.test", "rule-denies"],
    ["localhost", "loopback"],
  ] as const) {
    const decision = decide(name, { network: NETWORK });
    assert.deepEqual([decision.verdict, decision.reason], ["deny", reason], name);
  }
  assert.equal(decide("db.test", { network: "disabled" }).reason, "network-disabled");
  assert.equal(decide("db.test", { network: NETWORK }, "gone").reason, "identity-unknown");
});

test("decideName: evaluate_only allows, and says that it would not", () => {
  const decision = decide("other.test", { network: NETWORK, mode: "evaluate_only" });
  assert.deepEqual(decision, { verdict: "allow", reason: "no-rule-matched", rule: undefined, would: "deny" });
});
