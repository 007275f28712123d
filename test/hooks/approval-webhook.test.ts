import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { describePending, readWebhookAnswer, signatureFields } from "../../src/hooks/approval-webhook.ts";

const PENDING = {
  id: "0123456789ab",
  sandbox: "ci-17",
  rule: "api",
  host: "api.example.com",
  port: 443,
  method: "GET",
  path: "/x",
  why: "sensitive",
  since: 0,
  until: 60_000,
  waits: true,
};

test("describePending tells what waits, and until when", () => {
  assert.deepEqual(JSON.parse(describePending(PENDING)), {
    type: "approval_requested",
    ...PENDING,
    since: "1970-01-01T00:00:00.000Z",
    until: "1970-01-01T00:01:00.000Z",
  });
  const bare = { ...PENDING, sandbox: undefined, rule: undefined, why: undefined, path: null };
  const { sandbox, rule, why, path } = JSON.parse(describePending(bare)) as Record<string, unknown>;
  assert.deepEqual([sandbox, rule, why, path], [null, null, null, null]);
});

test("signatureFields sign the time and the body", () => {
  const [time, signature] = signatureFields('{"a":1}', "a-secret", 1_700_000_000_999);
  assert.deepEqual(time, ["X-Sallyport-Timestamp", "1700000000"]);
  const digest = createHmac("sha256", "a-secret").update('1700000000.{"a":1}').digest("hex");
  assert.deepEqual(signature, ["X-Sallyport-Signature", `sha256=${digest}`]);
});

test("readWebhookAnswer takes a word with its scope and its name", () => {
  for (const [text, resolution] of [
    ['{"decision":"approve"}', { approve: true, by: "webhook", scope: { kind: "once" } }],
    ['{"decision":"deny","by":"ada"}', { approve: false, by: "ada", scope: { kind: "once" } }],
    [
      '{"decision":"approve","scope":"sandbox"}',
      { approve: true, by: "webhook", scope: { kind: "sandbox" } },
    ],
    [
      '{"decision":"approve","scope":"30m"}',
      { approve: true, by: "webhook", scope: { kind: "time", ms: 1_800_000 } },
    ],
  ] as const) {
    assert.deepEqual(readWebhookAnswer(200, text), { kind: "word", resolution }, text);
  }
});

test("readWebhookAnswer leaves pending what gives no word yet", () => {
  for (const [status, text] of [
    [202, '{"decision":"approve"}'],
    [204, ""],
    [200, " \n"],
    [200, '{"decision":"pending"}'],
  ] as const) {
    assert.deepEqual(readWebhookAnswer(status, text), { kind: "pending" }, `${status} ${text}`);
  }
});

test("readWebhookAnswer takes nothing else for a word", () => {
  for (const text of [
    "approve",
    "[]",
    "null",
    "{}",
    '{"decision":"yes"}',
    '{"decision":true}',
    '{"decision":"approve","scope":"forever"}',
    '{"decision":"approve","by":7}',
    '{"decision":"approve","by":""}',
    '{"decision":"approve","by":"\\u001b[31m"}',
    '{"decision":"approve","extra":1}',
  ]) {
    assert.deepEqual(readWebhookAnswer(200, text), { kind: "nonsense" }, text);
  }
  for (const status of [199, 301, 400, 500]) {
    assert.deepEqual(readWebhookAnswer(status, '{"decision":"approve"}'), { kind: "nonsense" });
  }
});
