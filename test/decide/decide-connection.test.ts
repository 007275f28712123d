import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import type { Policy } from "../../src/decide/policy.ts";
import { ask, buildPolicy, type Entry, outside, type Settings } from "./build.ts";
import { policies, questions } from "./generate.ts";

test("decideConnection: a tunnel says whether it may be looked into after all", () => {
  assert.equal(fate({ domain: "a.example.com" }), "tunnel mayInspect https r");
  assert.equal(fate({ domain: "a.example.com", intercept: "never" }), "tunnel https r");
  assert.equal(fate({ domain: "a.example.com", protocol: "tcp" }), "tunnel opaque tcp r");
});

test("decideConnection: what needs the inside is inspected", () => {
  const inside: readonly Partial<Entry>[] = [
    { methods: ["GET"] },
    { paths: ["/a"] },
    { transform: { Authorization: "x" } },
    { intercept: "always" },
    { client_certificate: "c" },
  ];
  for (const part of inside) assert.equal(fate({ domain: "a.example.com", ...part }), "inspect");
});

test("decideConnection: an inspected connection may be dialled for what its rule is about, without a secret", () => {
  const network = { allowlist: [{ id: "r", domain: "a.example.com", transform: { Authorization: "x" } }] };
  const inspected = decideConnection(outside(ask("https://a.example.com/")), buildPolicy({ network }));
  assert.ok(inspected.verdict === "inspect");
  assert.deepEqual([inspected.permit.rule, inspected.permit.injections], ["r", []]);
  const evaluated = buildPolicy({ mode: "evaluate_only", network });
  const plain = decideConnection(outside(ask("http://b.example.com/")), evaluated);
  assert.ok(plain.verdict === "inspect");
  assert.deepEqual([plain.permit.rule, plain.permit.injections], [undefined, []]);
});

test("decideConnection: plain HTTP is never a tunnel, for it can be seen", () => {
  assert.equal(fate({ domain: "a.example.com" }, "http://a.example.com/"), "inspect");
});

test("decideConnection: D21 bytes of neither kind need an entry of their own", () => {
  assert.equal(fate({ domain: "a.example.com" }, "tcp://a.example.com:443"), "needs-inspection r");
  assert.equal(
    fate({ domain: "a.example.com", protocol: "tcp" }, "tcp://a.example.com:443"),
    "tunnel opaque tcp r",
  );
});

test("decideConnection: a tcp entry settles its port wherever it stands", () => {
  const policy = buildPolicy({
    network: {
      allowlist: [
        { id: "web", domain: "a.example.com", methods: ["GET"] },
        { id: "raw", domain: "a.example.com", protocol: "tcp" },
      ],
    },
  });
  assert.equal(describe("https://a.example.com/", policy), "tunnel opaque tcp raw");
  assert.equal(describe("http://a.example.com/", policy), "tunnel opaque tcp raw");
});

test("decideConnection: what is not listed is refused before anything is seen", () => {
  assert.equal(fate({ domain: "a.example.com" }, "https://b.example.com/"), "no-rule-matched undefined");
  assert.equal(fate({ domain: "a.example.com" }, "https://a.example.com:8443/"), "no-rule-matched undefined");
  assert.equal(fate({ domain: "a.example.com" }, "https://localhost/"), "loopback undefined");
});

test("decideConnection: in evaluate_only a refusal is relayed, and plain HTTP looked at", () => {
  const settings: Settings = {
    mode: "evaluate_only",
    network: { allowlist: [{ id: "r", domain: "a.example.com" }] },
  };
  const policy = buildPolicy(settings);
  assert.equal(describe("https://b.example.com/", policy), "tunnel mayInspect https undefined");
  assert.equal(describe("tcp://b.example.com:22", policy), "tunnel opaque mayInspect tcp undefined");
  assert.equal(describe("tcp://a.example.com:443", policy), "tunnel opaque mayInspect tcp r");
  assert.equal(describe("http://b.example.com/", policy), "inspect");
  assert.equal(describe("https://127.0.0.1/", policy), "loopback undefined");
});

test("decideConnection: less visibility never allows more: a tunnel is one in which every request is allowed", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      const connection = decideConnection(outside(question), policy);
      if (connection.verdict !== "tunnel" || connection.opaque) return;
      const inside = decideExchange(question, policy);
      assert.deepEqual(inside, connection.allowance);
      assert.deepEqual(inside.verdict === "allow" ? inside.permit.injections : undefined, []);
    }),
    { numRuns: 3_000 },
  );
});

test("decideConnection: a refused connection has no request in it that would be allowed", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      const connection = decideConnection(outside(question), policy);
      if (connection.verdict === "deny") assert.equal(decideExchange(question, policy).verdict, "deny");
    }),
    { numRuns: 3_000 },
  );
});

test("decideConnection: an opaque tunnel is what a tcp exchange is allowed to be", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      const connection = decideConnection(outside(question), policy);
      if (connection.verdict !== "tunnel" || !connection.opaque) return;
      const exchange = decideExchange(outside({ ...question, scheme: "tcp" }), policy);
      assert.equal(exchange.verdict, "allow");
      assert.equal(connection.allowance.permit.scheme, "tcp");
    }),
    { numRuns: 3_000 },
  );
});

function fate(entry: Entry, url = "https://a.example.com/"): string {
  return describe(url, buildPolicy({ network: { allowlist: [{ id: "r", ...entry }] } }));
}

function describe(url: string, policy: Policy): string {
  const connection = decideConnection(outside(ask(url)), policy);
  if (connection.verdict === "inspect") return "inspect";
  if (connection.verdict === "deny") return `${connection.reason} ${connection.rule}`;
  const { scheme, rule } = connection.allowance.permit;
  return [
    "tunnel",
    ...(connection.opaque ? ["opaque"] : []),
    ...(connection.mayInspect ? ["mayInspect"] : []),
    scheme,
    `${rule}`,
  ].join(" ");
}
