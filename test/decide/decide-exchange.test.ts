import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import type { Policy } from "../../src/decide/policy.ts";
import type { Reason } from "../../src/model/decision.ts";
import { ask, buildPolicy, type Entry, field, outside, type Settings } from "./build.ts";
import { policies, questions, settings } from "./generate.ts";

test("decideExchange: an allowance carries the permit, and no secret but its name", () => {
  const policy = one({ id: "r", domain: "a.example.com", transform: { Authorization: "Bearer x" } });
  const question = ask("https://a.example.com/");
  const decision = decideExchange(question, policy);
  assert.equal(decision.verdict, "allow");
  assert.deepEqual([decision.reason, decision.would, decision.permit.rule], ["rule-allows", undefined, "r"]);
  assert.equal(decision.permit.destination, question.destination);
  assert.deepEqual(decision.permit.injections, [
    {
      field: "Authorization",
      key: "authorization",
      secret: "network.allowlist.a.example.com.transform.Authorization",
    },
  ]);
});

test("decideExchange: what needs the inside is refused where it cannot be seen", () => {
  const inside: readonly Partial<Entry>[] = [
    { methods: ["GET"] },
    { paths: ["/"] },
    { transform: { Authorization: "x" } },
    { intercept: "always" },
  ];
  for (const part of inside) {
    const decision = decideExchange(
      outside(ask("https://a.example.com/")),
      one({ domain: "a.example.com", ...part }),
    );
    assert.deepEqual(decision, { verdict: "deny", reason: "needs-inspection", rule: "a.example.com" });
  }
  assert.equal(
    decideExchange(outside(ask("https://a.example.com/")), one({ domain: "a.example.com" })).verdict,
    "allow",
  );
});

test("decideExchange: an entry that needs the inside is not skipped for a later one that does not", () => {
  const policy = buildPolicy({
    network: {
      allowlist: [
        { id: "narrow", domain: "a.example.com", methods: ["GET"] },
        { id: "wide", domain: "a.example.com" },
      ],
    },
  });
  const decision = decideExchange(outside(ask("https://a.example.com/")), policy);
  assert.deepEqual(decision, { verdict: "deny", reason: "needs-inspection", rule: "narrow" });
});

test("decideExchange: entries of one protocol do not answer for the other", () => {
  const tcp = one({ domain: "a.example.com", protocol: "tcp" });
  assert.equal(reason("https://a.example.com/", tcp), "no-rule-matched");
  assert.equal(decideExchange(outside(ask("tcp://a.example.com:443")), tcp).verdict, "allow");
  const http = one({ domain: "a.example.com" });
  assert.equal(decideExchange(outside(ask("tcp://a.example.com:443")), http).verdict, "deny");
});

test("decideExchange: G03 a secret is refused over plain HTTP before anything else is looked at", () => {
  const policy = one({ domain: "a.example.com", methods: ["TRACE"], transform: { X: "x" } });
  const question = ask("http://a.example.com/", {
    method: "TRACE",
    fields: [field("X-HTTP-Method-Override", "PUT")],
  });
  assert.equal(decideExchange(question, policy).reason, "plaintext-secret");
});

test("decideExchange: the path is read once and judged by each entry for itself", () => {
  const policy = buildPolicy({
    network: {
      allowlist: [
        { id: "post", domain: "a.example.com", methods: ["POST"], paths: ["/x"] },
        { id: "slash", domain: "a.example.com", paths: ["/a%2Fc"], encoded_slash: "allow" },
        { id: "strict", domain: "a.example.com", paths: ["/b"] },
        { id: "rest", domain: "a.example.com" },
      ],
    },
  });
  const rule = (target: string): string | undefined => {
    const decision = decideExchange(ask(`https://a.example.com${target}`), policy);
    return decision.verdict === "allow" ? decision.permit.rule : `${decision.reason} ${decision.rule}`;
  };
  assert.equal(rule("/a%2fc"), "slash");
  assert.equal(rule("/a%2fb"), "path-ambiguous strict");
  assert.equal(rule("/b"), "strict");
  assert.equal(rule("/c"), "rest");
  assert.equal(rule("*"), "rest");
});

test("decideExchange: E21 no path pattern covers the server as a whole", () => {
  const question = ask("https://a.example.com*", { method: "OPTIONS" });
  assert.equal(
    decideExchange(question, one({ domain: "a.example.com", paths: [".*"] })).reason,
    "no-rule-matched",
  );
});

test("decideExchange: less visibility never allows more", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      if (policy.mode !== "enforce" || decideExchange(outside(question), policy).verdict === "deny") return;
      assert.equal(decideExchange(question, policy).verdict, "allow");
    }),
    { numRuns: 3_000 },
  );
});

test("decideExchange: evaluate_only injects exactly what enforce injects, and lets through only opinions", () => {
  const opinions: readonly Reason[] = [
    "no-rule-matched",
    "rule-denies",
    "needs-inspection",
    "method-refused",
    "path-ambiguous",
  ];
  fc.assert(
    fc.property(settings, questions, (setting, question) => {
      const [enforced, evaluated] = (["enforce", "evaluate_only"] as const).map((mode) =>
        decideExchange(question, buildPolicy({ ...setting, mode })),
      );
      assert.equal(evaluated?.reason, enforced?.reason);
      if (enforced?.verdict === "allow") assert.deepEqual(evaluated, enforced);
      else if (evaluated?.verdict === "deny") assert.deepEqual(evaluated, enforced);
      else {
        assert.deepEqual([evaluated?.would, evaluated?.permit.injections], ["deny", []]);
        assert.ok(opinions.includes(evaluated?.reason ?? "loopback"));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("decideExchange: a secret goes over TLS alone, never on TRACE, never past an override of what was judged", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      const decision = decideExchange(question, policy);
      if (decision.verdict === "deny" || decision.permit.injections.length === 0) return;
      assert.equal(question.scheme, "https");
      assert.notEqual(question.request?.method, "TRACE");
      assert.ok(!question.request?.fields.some(({ value }) => value === "TRACE"));
    }),
    { numRuns: 2_000 },
  );
});

test("decideExchange: only a listed name is ever allowed", () => {
  const listed: Settings = {
    network: { allowlist: [{ domain: "a.example.com" }, { domain: "*.example.org" }] },
  };
  const policy = buildPolicy(listed);
  const labels = fc.array(fc.constantFrom("a", "b", "example", "org", "com", "localhost"), {
    minLength: 1,
    maxLength: 4,
  });
  fc.assert(
    fc.property(labels, (parts) => {
      const host = parts.join(".");
      const expected = host === "a.example.com" || /.\.example\.org$/.test(host);
      assert.equal(decideExchange(ask(`https://${host}/`), policy).verdict === "allow", expected, host);
    }),
    { numRuns: 1_000 },
  );
});

function one(entry: Entry): Policy {
  return buildPolicy({ network: { allowlist: [entry] } });
}

function reason(url: string, policy: Policy): Reason {
  return decideExchange(ask(url), policy).reason;
}

test("decideExchange: a client certificate goes over TLS alone, with the permit and with the dial before it", () => {
  const network = { allowlist: [{ domain: "a.example.com", client_certificate: "c" }] };
  const policy = buildPolicy({ network });
  const allowed = decideExchange(ask("https://a.example.com/", { method: "TRACE" }), policy);
  assert.equal(allowed.verdict === "allow" && allowed.permit.certificate, "c");
  assert.equal(decideExchange(ask("http://a.example.com/"), policy).reason, "plaintext-secret");
  const inspected = decideConnection(outside(ask("https://a.example.com/")), policy);
  assert.equal(inspected.verdict === "inspect" && inspected.permit.certificate, "c");
});
