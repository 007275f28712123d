import assert from "node:assert/strict";
import { test } from "node:test";
import type { Composed, Composition, Emission } from "../../src/hooks/emission.ts";
import { emissionRecord } from "../../src/hooks/interception-record.ts";
import type { JsonObject } from "../../src/hooks/jcs.ts";
import { ALLOW, readVerdict } from "../../src/hooks/verdict.ts";

const KNOBS = { onApproval: "resume", onTransformConflict: "approval", onDisagreement: "approval" } as const;
const CONTEXT: JsonObject = {
  interception_point: "pre_tool_call",
  timestamp: "2026-05-01T12:00:00.000Z",
  sequence: 4,
  session: { id: "s" },
  target: { path: "/payload" },
};

function emission(composition: Composition, context = CONTEXT): Emission {
  const interceptor = {
    name: "gate",
    timeoutMs: 1,
    ask: () => Promise.resolve(""),
    forbids: () => undefined,
  };
  const signal = new AbortController().signal;
  return { context, interceptors: [interceptor, interceptor], mode: "enforce", composition, signal };
}

const COMPOSED: Composed = {
  verdict: readVerdict('{"decision":"deny","reason":"no"}'),
  decidedBy: 1,
  said: [ALLOW, readVerdict('{"decision":"deny","reason":"no"}')],
  context: CONTEXT,
};

test("emissionRecord: the whole of it, and nothing of the target", () => {
  const record = emissionRecord(
    emission({ profile: "sequential/first_deny", ...KNOBS }),
    COMPOSED,
    "sha256:a",
    "sha256:b",
  );
  assert.deepEqual(record, {
    interception_point: "pre_tool_call",
    mode: "enforce",
    verdict: { decision: "deny", reason: "no" },
    input_identity: "sha256:a",
    enforced_identity: "sha256:b",
    identity_provider: "jcs-sha256",
    session_id: "s",
    sequence: 4,
    timestamp: "2026-05-01T12:00:00.000Z",
    decided_by: 1,
    composition: { profile: "sequential/first_deny", on_approval: "resume" },
    verdicts: [
      { index: 0, decision: "allow", name: "gate" },
      { index: 1, decision: "deny", reason: "no", name: "gate" },
    ],
    fold_truncated: false,
    interceptors_registered: 2,
  });
});

test("emissionRecord: the composition names the knobs that it consults", () => {
  const knobs = (["sequential/run_all", "parallel/strictest", "parallel/unanimous"] as const).map(
    (profile) => emissionRecord(emission({ profile, ...KNOBS }), COMPOSED, null, null)["composition"],
  );
  assert.deepEqual(knobs, [
    { profile: "sequential/run_all" },
    { profile: "parallel/strictest", on_transform_conflict: "approval" },
    { profile: "parallel/unanimous", on_disagreement: "approval" },
  ]);
});

test("emissionRecord: what the context lacks has the contract's stand-ins", () => {
  const bare = emission({ profile: "sequential/run_all", ...KNOBS }, { session: 1 });
  const record = emissionRecord(bare, { ...COMPOSED, said: [] }, null, null);
  const { session_id, sequence, timestamp, fold_truncated, verdicts } = record;
  assert.deepEqual(
    [session_id, sequence, timestamp, fold_truncated, verdicts],
    ["", -1, undefined, true, []],
  );
});
