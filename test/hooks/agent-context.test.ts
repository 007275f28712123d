import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contextIdentity, fits, withTarget } from "../../src/hooks/agent-context.ts";
import { canonicalJson, type Json, type JsonObject } from "../../src/hooks/jcs.ts";

interface Fixture {
  readonly id: string;
  /** Null: the context has none. */
  readonly identity: string | null;
  readonly context: JsonObject;
}

/** The golden identities that AGENT-HOOKS-0.1 publishes (responsibleai/agent-hooks, MIT). */
const FIXTURES = JSON.parse(
  readFileSync(new URL("./agent-hooks-identity.json", import.meta.url), "utf8"),
) as readonly Fixture[];
const MISPARSED = "G-15-rfc8785-numbers";

test("contextIdentity: all but one of the sixteen published identities come out", () => {
  const positive = FIXTURES.filter(({ identity }) => identity !== null);
  const missed = positive.filter(({ identity, context }) => contextIdentity(context) !== identity);
  assert.equal(positive.length, 16);
  assert.deepEqual(
    missed.map(({ id }) => id),
    [MISPARSED],
  );
});

test("contextIdentity: the one that does not is the hash of a neighbouring number", () => {
  const fixture = FIXTURES.find(({ id }) => id === MISPARSED);
  assert.ok(fixture);
  // The fixture's number reads back as itself, as RFC 8785 wants; its hash is of the double just below.
  assert.equal(canonicalJson(9.999999999999997e22), "9.999999999999997e+22");
  assert.notEqual(9.999999999999997e22, 9.999999999999996e22);
  const { spec, interception_point, timestamp, sequence, agent, session, target, tool_call } =
    fixture.context;
  const counted = {
    spec,
    interception_point,
    timestamp,
    sequence,
    agent,
    session,
    target,
    tool_call,
  } as Json;
  const text = canonicalJson(counted)?.replaceAll("9.999999999999997e+22", "9.999999999999996e+22") ?? "";
  const misparsed = `sha256:${createHash("sha256").update(text).digest("hex")}`;
  assert.equal(misparsed, fixture.identity);
});

for (const { id, context } of FIXTURES.filter(({ identity }) => identity === null)) {
  test(`contextIdentity: ${id} has none`, () => {
    assert.equal(contextIdentity(context), undefined);
  });
}

test("contextIdentity: a point of nobody's, and a member of another type, have none", () => {
  const context = FIXTURES.find(({ id }) => id.startsWith("G-03"))?.context ?? {};
  assert.equal(typeof contextIdentity(context), "string");
  assert.equal(contextIdentity({ ...context, interception_point: "egress" }), undefined);
  assert.equal(contextIdentity({ ...context, interception_point: "toString" }), undefined);
  assert.equal(contextIdentity({ ...context, agent: "a" }), undefined);
  assert.equal(contextIdentity({ ...context, session: {} }), undefined);
});

test("withTarget: what is rewritten before a call are its arguments", () => {
  const before = { interception_point: "pre_tool_call", target: 1, tool_call: { id: "a", args: 1 } };
  assert.deepEqual(withTarget(before, 2), { ...before, target: 2, tool_call: { id: "a", args: 2 } });
  const after = { ...before, interception_point: "post_tool_call" };
  assert.deepEqual(withTarget(after, 2), { ...after, target: 2 });
});

test("fits: 5 MiB do", () => {
  assert.deepEqual([fits("x".repeat(5 << 20)), fits("x".repeat((5 << 20) + 1))], [true, false]);
});
