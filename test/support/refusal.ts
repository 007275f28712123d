/** Asserts that an answer is a refusal as the contract has it. */
import assert from "node:assert/strict";
import type { Message } from "./message-reader.ts";
import { oneValue, statusOf } from "./message-reader.ts";

export interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly host?: string | null;
  readonly rule?: string | null;
}

export function assertRefused(answer: Message, expected: Refusal): void {
  const reason = oneValue(answer, "x-sallyport-reason");
  assert.deepEqual([statusOf(answer), reason], [expected.status, expected.reason], answer.head);
  assert.equal(oneValue(answer, "content-type"), "application/json");
  assert.equal(oneValue(answer, "cache-control"), "no-store");
  const { error } = JSON.parse(answer.body) as { error: Record<string, unknown> };
  assert.deepEqual(Object.keys(error).sort(), [
    "hint",
    "host",
    "message",
    "port",
    "reason",
    "retry",
    "rule",
    "verdict",
  ]);
  assert.deepEqual([error["verdict"], error["reason"], error["retry"]], ["deny", expected.reason, false]);
  if (expected.host !== undefined) assert.equal(error["host"], expected.host);
  if (expected.rule !== undefined) assert.equal(error["rule"], expected.rule);
}

/** An upstream that failed: a code, and no word about addresses or certificates. */
export function assertFailed(answer: Message, status: number, code: string): void {
  assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-failure")], [status, code], answer.head);
  assert.doesNotMatch(answer.head + answer.body, /\b11\.0\.|ERR_|CERT_|altname|issuer|ECONN|ENOTFOUND/);
}
