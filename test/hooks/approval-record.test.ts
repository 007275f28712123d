import assert from "node:assert/strict";
import { test } from "node:test";
import { renderApproval } from "../../src/hooks/approval-record.ts";

const PENDING = {
  id: "0123456789ab",
  sandbox: undefined,
  rule: undefined,
  host: "api.example.com",
  port: 443,
  method: "CONNECT",
  path: null,
  why: undefined,
  since: 0,
  until: 1,
  waits: true,
};

test("renderApproval: what it was for, by whom, and for how long", () => {
  const line = renderApproval(
    PENDING,
    { approve: true, by: "ada", scope: { kind: "time", ms: 1_800_000 } },
    0,
  );
  assert.deepEqual(JSON.parse(line), {
    time: "1970-01-01T00:00:00.000Z",
    approval: "approved",
    id: "0123456789ab",
    by: "ada",
    scope: "30m",
    sandbox: null,
    rule: null,
    host: "api.example.com",
    port: 443,
    method: "CONNECT",
    path: null,
    why: null,
  });
});

test("renderApproval: one line of ASCII, whatever was written, cut where it is long", () => {
  const pending = { ...PENDING, path: `/\n\u007f${"é".repeat(2_000)}`, why: "ö\u2028" };
  const line = renderApproval(pending, { approve: false, by: "a", scope: { kind: "once" } }, 0);
  assert.match(line, /^[\x20-\x7e]+\n$/);
  const { path, why, approval, scope } = JSON.parse(line);
  assert.deepEqual([path.length, why, approval, scope], [1_024, "ö\u2028", "rejected", "once"]);
});
