import assert from "node:assert/strict";
import { test } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { compilePolicy } from "../../src/decide/policy.ts";
import { Failure } from "../../src/model/failure.ts";
import type { PolicySource } from "../../src/model/policy.ts";
import { buildPolicy, buildSource, type Entry } from "./build.ts";

test("compilePolicy: keeps what identifies it, and cannot be changed", () => {
  const source = { ...buildSource({ network: {} }), generation: 7, digest: "abc" };
  const policy = compilePolicy(source);
  assert.deepEqual([policy.generation, policy.digest, policy.mode], [7, "abc", "enforce"]);
  assert.equal(Object.isFrozen(policy), true);
});

test("compilePolicy: a disabled network has no rules at all", () => {
  const policy = buildPolicy({ network: "disabled", sandboxes: [{ id: "a" }, { id: "b", network: {} }] });
  assert.equal(policy.network, undefined);
  assert.equal(policy.sandboxes.get("a"), undefined);
  assert.equal(policy.sandboxes.get("b")?.rules.size, 0);
});

test("compilePolicy: exact names, literals and entries marked private may reach what is opened", () => {
  const reach = (entry: Entry): boolean | undefined => {
    const rules = buildPolicy({ network: { allowlist: [entry] } }).network?.rules;
    const groups = [rules?.any, ...(rules?.exact.values() ?? []), ...(rules?.addresses.values() ?? [])];
    const below = rules?.wildcards.children?.get("com")?.children?.get("example")?.entries;
    return [...groups, below].flatMap((group) => group ?? []).at(0)?.mayReachPrivate;
  };
  assert.equal(reach({ domain: "a.example.com" }), true);
  assert.equal(reach({ domain: "10.0.0.1" }), true);
  assert.equal(reach({ domain: "*.example.com" }), false);
  assert.equal(reach({ domain: "*.example.com", private: true }), true);
  assert.equal(reach({ domain: "*" }), false);
});

const REFUSED: readonly (readonly [string, Entry, RegExp])[] = [
  [
    "a path that does not compile",
    { id: "r", domain: "a.com", paths: ["/ok", "/(?=x)"] },
    /^Rule r has a path .*: Look-ahead/,
  ],
  ["a name in upper case", { id: "r", domain: "A.com" }, /^Rule r has a name that is not canonical$/],
  ["a name with a final dot", { id: "r", domain: "a.com." }, /not canonical/],
  ["a wildcard over nothing", { id: "r", domain: "*." }, /not canonical/],
  ["a wildcard inside a name", { id: "r", domain: "a.*.com" }, /not canonical/],
  [
    "methods of a tunnel",
    { id: "r", domain: "a.com", intercept: "never", methods: ["GET"] },
    /^Rule r needs to see inside/,
  ],
  [
    "a secret in a tunnel",
    { id: "r", domain: "a.com", intercept: "never", transform: { X: "x" } },
    /needs to see/,
  ],
  ["paths of raw bytes", { id: "r", domain: "a.com", protocol: "tcp", paths: ["/"] }, /needs to see/],
];

for (const [kind, entry, message] of REFUSED) {
  test(`compilePolicy: ${kind} fails, so that no rule means less than it says`, () => {
    const isFailure = (error: unknown): boolean =>
      error instanceof Failure &&
      error.code === "E_CONFIG" &&
      error.fault === "operator" &&
      message.test(error.message);
    assert.throws(() => buildPolicy({ network: { allowlist: [entry] } }), isFailure);
  });
}

test("compilePolicy: A08 a denied name that is not canonical fails too", () => {
  assert.throws(() => buildPolicy({ network: { denylist: [{ domain: "ex*mple.com" }] } }), Failure);
});

test("compilePolicy: 100,000 rules compile in a moment", () => {
  const allowlist = Array.from({ length: 100_000 }, (_, index) => ({
    domain: `${index % 2 === 0 ? "*." : ""}h${index}.d${index % 997}.example.com`,
    paths: ["/(a|b)/.*"],
  }));
  const source: PolicySource = buildSource({ network: { allowlist } });
  const start = process.cpuUsage();
  const policy = compilePolicy(source);
  const { user, system } = process.cpuUsage(start);
  assert.equal(policy.network?.rules.size, 100_000);
  // Microseconds of this process: what others do on the machine does not count. Measured: about 0.3 s.
  assert.ok(user + system < 3_000_000, `${user + system} µs`);
});

test("compilePolicy: the parent proxy is one of the gate's own endpoints", () => {
  const host = parseHostname("proxy.example.com");
  assert.ok(host);
  const parent = {
    scheme: "http",
    destination: { kind: "name", host, port: 3128 },
    auth: undefined,
    bypass: [],
    resolve: "local",
  } as const;
  const { endpoints } = compilePolicy({ ...buildSource({ network: {} }), parent });
  assert.deepEqual([...endpoints], ["proxy.example.com 3128"]);
});

test("compilePolicy: the gate's own endpoints are known, hooks' and the webhook's", () => {
  const destination = { kind: "name", host: "hook.example.com", port: 443 };
  const webhook = { endpoint: { destination } } as unknown as NonNullable<
    PolicySource["approvals"]["webhook"]
  >;
  const hooks = [{ domains: ["a.com"], url: "https://other.example.com/x" }];
  const { endpoints } = buildPolicy({ network: {}, hooks, approvals: { webhook } });
  assert.deepEqual([...endpoints], ["other.example.com 443", "hook.example.com 443"]);
});
