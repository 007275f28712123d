import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../src/base/ip.ts";
import { decideAddress } from "../../src/decide/decide-address.ts";
import { decideConnection } from "../../src/decide/decide-connection.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import { type Explanation, explain, type Query } from "../../src/decide/explain.ts";
import type { Policy } from "../../src/decide/policy.ts";
import type { Decision } from "../../src/model/decision.ts";
import type { Question } from "../../src/model/exchange.ts";
import { ask, buildPolicy, type Entry, field, known, outside } from "./build.ts";
import { type Case, type CaseTable, readCaseTables } from "./case-table.ts";
import { policies, questions } from "./generate.ts";

for (const table of readCaseTables()) {
  const policy = buildPolicy(table.policy);
  for (const row of table.cases) {
    test(`explain: ${table.file}: ${row.case}`, () => {
      checkRow(row, policy, table);
    });
  }
}

test("explain: notes say what an answer leaves open", () => {
  const policy = buildPolicy({
    mode: "evaluate_only",
    network: { allowlist: [{ domain: "a.example.com" }, { domain: "93.184.216.34" }] },
  });
  const notes = (url: string): readonly string[] => explain(queryOf(ask(url)), policy).notes;
  assert.deepEqual(notes("http://93.184.216.34/"), []);
  assert.deepEqual(notes("http://localhost/"), []);
  assert.match(
    notes("https://a.example.com/").join(),
    /^Relayed unseen: the Host .*,The address that the name/,
  );
  assert.match(
    notes("http://b.example.com/").join(),
    /^Allowed only because of mode evaluate_only.*,No entry of the allowlist covers the host,The address/,
  );
});

test("explain: notes say that hooks are asked", () => {
  const hooks = [{ domains: ["a.example.com"] }, { domains: ["*.example.com"] }];
  const policy = buildPolicy({ network: { allowlist: [{ domain: "*" }] }, hooks });
  const explained = explain(queryOf(ask("https://a.example.com/")), policy);
  assert.equal(explained.interception, "inspect");
  assert.equal(explained.notes[0], "Hooks are asked before it leaves, and may refuse it: 2");
});

test("explain: notes say whether the answer is searched for what is injected", () => {
  const rule = { domain: "a.example.com", transform: { Authorization: "x" } };
  const notes = (entry: Entry): string => {
    const policy = buildPolicy({ network: { allowlist: [entry] } });
    return explain(queryOf(ask("https://a.example.com/")), policy).notes.join();
  };
  assert.match(notes(rule), /The answer is searched for the secrets, and what is found is masked/);
  assert.match(notes({ ...rule, scrub: false }), /The answer is not searched for what is injected/);
  assert.doesNotMatch(notes({ domain: "a.example.com" }), /answer/);
});

test("explain: agrees with what the gate asks, in the gate's order", () => {
  fc.assert(
    fc.property(policies, questions, (policy, question) => {
      const { verdict, reason, rule, interception, injected } = explain(queryOf(question), policy);
      const [decision, how] = enforce(question, policy);
      const permit = decision.verdict === "allow" ? decision.permit : undefined;
      assert.deepEqual(
        { verdict, reason, rule, interception, injected },
        {
          verdict: decision.verdict,
          reason: decision.reason,
          rule: decision.verdict === "allow" ? permit?.rule : decision.rule,
          interception: how,
          injected: (permit?.injections ?? []).map((injection) => injection.field),
        },
      );
    }),
    { numRuns: 1_000 },
  );
});

/** As `connection.ts` and `exchange.ts` ask: plain HTTP by request alone, all else from outside first. */
function enforce(question: Question, policy: Policy): readonly [Decision, Explanation["interception"]] {
  if (question.scheme === "http") return [decideExchange(question, policy), "none"];
  const connection = decideConnection(outside(question), policy);
  if (connection.verdict === "deny") return [connection, "none"];
  if (connection.verdict === "tunnel") return [connection.allowance, "tunnel"];
  return [decideExchange(question, policy), "inspect"];
}

function checkRow(row: Case, policy: Policy, { file }: CaseTable): void {
  const question = questionOf(row);
  const explained = explain(queryOf(question), policy);
  const refused = row.resolves === undefined ? undefined : refusalOfAnswer(row, question, policy);
  const { reason, rule } = refused ?? explained;
  if (row.deny === undefined) {
    assert.deepEqual([refused?.reason, explained.verdict], [undefined, "allow"], file);
    assert.deepEqual([rule, reason], [row.allow ?? undefined, row.would ?? "rule-allows"]);
    assert.deepEqual(explained.injected, row.injected ?? []);
  } else {
    assert.deepEqual([explained.verdict, refused?.verdict].includes("deny"), true, "not refused");
    assert.deepEqual([reason, rule], [row.deny, row.rule]);
  }
  if (row.interception !== undefined) assert.equal(explained.interception, row.interception);
}

function refusalOfAnswer(row: Case, question: Question, policy: Policy): Refusal | undefined {
  const [decision] = enforce(question, policy);
  assert.equal(decision.verdict, "allow", "the request itself is refused");
  const text = row.resolves ?? "";
  const surroundings = { own: new Set<string>(), endpoints: new Set<string>() };
  const address = known(parseIpAddress(text), text);
  const answer = decideAddress(decision.permit, address, policy, surroundings);
  return answer.verdict === "deny" ? answer : undefined;
}

type Refusal = Extract<Decision, { readonly verdict: "deny" }>;

function questionOf(row: Case): Question {
  const [method, url] = row.ask.includes(" ") ? (row.ask.split(" ") as [string, string]) : ["GET", row.ask];
  return ask(url, {
    method,
    client: { sandbox: row.sandbox, address: "10.80.0.2" },
    fields: Object.entries(row.fields ?? {}).map(([name, value]) => field(name, value)),
  });
}

function queryOf({ client, destination, scheme, request }: Question): Query {
  return { client, destination, scheme, request: known(request, "no request") };
}
