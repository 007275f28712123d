import assert from "node:assert/strict";
import { test } from "node:test";
import { ALLOW, hostDenial, projectVerdict, readVerdict, severity } from "../../src/hooks/verdict.ts";

const VALID: readonly (readonly [text: string, expected: object])[] = [
  ['{"decision":"allow"}', {}],
  ['{"decision":"deny","reason":"r","message":"m"}', { decision: "deny", reason: "r", message: "m" }],
  ['{"decision":"deny","approval":{}}', { decision: "deny", liftable: true }],
  ['{"decision":"deny","approval":{"who":"x"}}', { decision: "deny", liftable: true }],
  ['{"decision":"allow","reason":null,"message":null,"warnings":null,"result_labels":null}', {}],
  [
    '{"decision":"allow","warnings":[{"reason":"w"},{"message":"m"},{}]}',
    {
      warnings: [
        { reason: "w", message: undefined },
        { reason: undefined, message: "m" },
        { reason: undefined, message: undefined },
      ],
    },
  ],
  [
    '{"decision":"transform","transform":{"path":"$target.a"}}',
    { decision: "transform", transform: { path: "$target.a", value: null } },
  ],
  ['{"decision":"allow","result_labels":["a"]}', { labels: ["a"] }],
  [
    '{"decision":"allow","evidence":{"artefact":"sha256:a","verification_pointers":{"k":"u"}}}',
    { evidence: { artefact: "sha256:a", verification_pointers: { k: "u" } } },
  ],
  ['{"decision":"allow","evidence":null}', {}],
  ['{"decision":"allow","evidence":{"artefact":null}}', { evidence: { artefact: null } }],
];

for (const [text, expected] of VALID) {
  test(`readVerdict: ${text} is one`, () => {
    assert.deepEqual(readVerdict(text), { ...ALLOW, ...expected });
  });
}

const INVALID = [
  "[]",
  "null",
  '"allow"',
  "{}",
  '{"decision":"warn"}',
  '{"decision":"escalate"}',
  '{"decision":"allow","extra":1}',
  '{"decision":"deny","reason":"host_error:interceptor_failed"}',
  '{"decision":"deny","reason":1}',
  '{"decision":"deny","message":[]}',
  '{"decision":"allow","approval":{}}',
  '{"decision":"transform","approval":{},"transform":{"path":"$target"}}',
  '{"decision":"deny","approval":true}',
  '{"decision":"transform"}',
  '{"decision":"allow","transform":{"path":"$target"}}',
  '{"decision":"transform","transform":{"path":1}}',
  '{"decision":"transform","transform":{"path":"$target","more":1}}',
  '{"decision":"transform","transform":[]}',
  '{"decision":"allow","warnings":{}}',
  '{"decision":"allow","warnings":["w"]}',
  '{"decision":"allow","warnings":[{"reason":"host_error:x"}]}',
  '{"decision":"allow","warnings":[{"other":1}]}',
  '{"decision":"allow","result_labels":"a"}',
  '{"decision":"allow","result_labels":[1]}',
  '{"decision":"allow","evidence":[]}',
  '{"decision":"allow","evidence":{"other":1}}',
  '{"decision":"allow","evidence":{"artefact":1}}',
  '{"decision":"allow","evidence":{"verification_pointers":{"k":1}}}',
  `{"decision":"allow","evidence":{"artefact":"${"x".repeat(10_240)}"}}`,
];

for (const text of INVALID) {
  test(`readVerdict: ${text.slice(0, 70)} is none`, () => {
    assert.deepEqual(readVerdict(text), hostDenial("verdict_invalid"));
  });
}

test("readVerdict: what is not JSON is a hook that failed", () => {
  for (const text of ["", "allow", "{"])
    assert.deepEqual(readVerdict(text), hostDenial("interceptor_failed"));
});

test("severity: a plain denial, one that may be lifted, a rewriting, an allowance", () => {
  const transform = { ...ALLOW, decision: "transform" } as const;
  const order = [hostDenial("verdict_invalid"), hostDenial("verdict_invalid", true), transform, ALLOW];
  assert.deepEqual(order.map(severity), [3, 2, 1, 0]);
});

test("projectVerdict: no value and no approver's word is kept, and texts are cut on a character's border", () => {
  const verdict = readVerdict(
    JSON.stringify({
      decision: "transform",
      reason: "r",
      message: "é".repeat(200),
      warnings: [{ message: "x".repeat(300) }, { reason: "w", message: "short" }],
      transform: { path: "$target.a", value: "secret" },
      evidence: { artefact: "a" },
      result_labels: ["l"],
    }),
  );
  const kept = projectVerdict(verdict);
  assert.equal(kept["message"], `${"é".repeat(126)}…`);
  assert.deepEqual(kept["transform"], { path: "$target.a" });
  assert.deepEqual(kept["warnings"], [{ message: `${"x".repeat(253)}…` }, { reason: "w", message: "short" }]);
  assert.deepEqual([kept["evidence"], kept["result_labels"]], [{ artefact: "a" }, ["l"]]);
  const lifted = projectVerdict(readVerdict('{"decision":"deny","approval":{"who":"me"}}'));
  assert.deepEqual(lifted, { decision: "deny", approval: {} });
});
