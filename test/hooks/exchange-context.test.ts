import assert from "node:assert/strict";
import { test } from "node:test";
import { contextIdentity } from "../../src/hooks/agent-context.ts";
import {
  argsOf,
  contextAfter,
  contextBefore,
  forbidsWriting,
  settingsOf,
} from "../../src/hooks/exchange-context.ts";
import type { Field } from "../../src/model/exchange.ts";
import type { ExchangeRecord } from "../../src/model/record.ts";
import { ask } from "../decide/build.ts";

const ENVELOPE = { session: "s", sequence: 4, call: "x-1", time: Date.UTC(2026, 4, 1) };

function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

test("argsOf: the exchange without its query, and the fields that may be set", () => {
  const fields = [field("x-trace", "a"), field("X-Trace", "b"), field("Cookie", "c=d")];
  assert.deepEqual(argsOf(ask("https://api.example.com/a/b?secret=1", { fields }), ["X-Trace", "X-New"]), {
    method: "GET",
    scheme: "https",
    host: "api.example.com",
    port: 443,
    path: "/a/b",
    sandbox: null,
    headers: { "X-Trace": "a, b", "X-New": null },
  });
});

test("argsOf: a tunnel is a CONNECT without a path", () => {
  const client = { sandbox: "ci-17", address: "10.0.0.1" };
  const question = ask("https://10.20.0.5/", { visibility: "destination", client });
  assert.deepEqual(argsOf(question, []), {
    method: "CONNECT",
    scheme: "https",
    host: "10.20.0.5",
    port: 443,
    path: null,
    sandbox: "ci-17",
  });
});

test("contextBefore: a whole context, whose target are the arguments", () => {
  const args = argsOf(ask("https://api.example.com/"), []);
  const context = contextBefore(args, ENVELOPE);
  assert.deepEqual(context, {
    spec: "agent-hooks/0.1",
    interception_point: "pre_tool_call",
    timestamp: "2026-05-01T00:00:00.000Z",
    sequence: 4,
    agent: { id: "default", framework: "sallyport" },
    session: { id: "s" },
    tool_call: { id: "x-1", name: "http_request", args },
    target: args,
  });
  assert.match(contextIdentity(context) ?? "", /^sha256:/);
});

test("contextAfter: a whole context, whose target is what came of it", () => {
  const args = { ...argsOf(ask("https://api.example.com/"), []), sandbox: "ci-17" };
  const record = {
    verdict: "allow",
    reason: "rule-allows",
    status: 200,
    bytesOut: 1,
    bytesIn: 2,
    durationMs: 3.4,
  };
  const context = contextAfter(args, ENVELOPE, record as ExchangeRecord);
  const value = {
    verdict: "allow",
    reason: "rule-allows",
    status: 200,
    bytes_out: 1,
    bytes_in: 2,
    duration_ms: 3,
    failure: null,
  };
  assert.deepEqual([context["tool_result"], context["target"]], [{ value, is_error: false }, value]);
  assert.deepEqual(context["agent"], { id: "ci-17", framework: "sallyport" });
  assert.match(contextIdentity(context) ?? "", /^sha256:/);
  const cut = { ...record, reason: undefined, status: undefined, failure: "E_TIMEOUT" };
  const failed = contextAfter(args, ENVELOPE, cut as ExchangeRecord)["tool_result"] as { is_error: boolean };
  assert.equal(failed.is_error, true);
});

const WRITES: readonly (readonly [path: readonly (string | number)[], value: unknown, reason: unknown])[] = [
  [["headers", "X-Trace"], "t", undefined],
  [["headers", "X-Trace"], null, undefined],
  [["headers", "X-Trace"], "a\r\nb", "transform_invalid"],
  [["headers", "X-Trace"], "", "transform_invalid"],
  [["headers", "X-Trace"], 7, "transform_invalid"],
  [["headers", "X-Other"], "t", "transform_target_forbidden"],
  [["headers", "X-Trace", 0], "t", "transform_target_forbidden"],
  [["headers"], {}, "transform_target_forbidden"],
  [["headers", 0], "t", "transform_target_forbidden"],
  [["host"], "t", "transform_target_forbidden"],
  [[], {}, "transform_target_forbidden"],
];

for (const [path, value, reason] of WRITES) {
  test(`forbidsWriting: ${JSON.stringify(value)} at ${path.join(".")} is ${reason ?? "fine"}`, () => {
    assert.equal(forbidsWriting(["X-Trace"], path, value as string), reason);
  });
}

test("settingsOf: what is another than it was, and nothing else", () => {
  const before = { headers: { "X-A": "1", "X-B": "2", "X-C": null } };
  const after = { headers: { "X-A": "1", "X-B": null, "X-C": "3" } };
  assert.deepEqual(settingsOf(before, after), [
    { field: "X-B", key: "x-b", value: undefined },
    { field: "X-C", key: "x-c", value: "3" },
  ]);
  assert.deepEqual(settingsOf({}, after), []);
  assert.deepEqual(settingsOf(before, null), []);
});
