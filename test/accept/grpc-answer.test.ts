/** Refusals and failures as gRPC knows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { grpcAnswer } from "../../src/accept/grpc-answer.ts";
import { type Answer, answerFailure, refusalOf } from "../../src/accept/refusal.ts";
import { Failure } from "../../src/model/failure.ts";

const ABOUT = { host: "a.example.com", port: 443, connect: false };

function fieldsOf(answer: Answer): Record<string, string> {
  const head = grpcAnswer(answer);
  assert.equal(head.status, 200);
  return Object.fromEntries(head.fields.map(({ key, value }) => [key, value]));
}

test("grpcAnswer: a denial is PERMISSION_DENIED, and its message begins with its reason", () => {
  const fields = fieldsOf(refusalOf({ verdict: "deny", reason: "rule-denies", rule: undefined }, ABOUT));
  assert.equal(fields["content-type"], "application/grpc");
  assert.equal(fields["grpc-status"], "7");
  assert.match(
    String(fields["grpc-message"]),
    /^rule-denies: Blocked by sandbox policy: .*a\.example\.com\. Retrying/,
  );
  assert.equal(fields["x-sallyport-reason"], "rule-denies");
});

for (const [failure, status] of [
  [new Failure("E_CONNECT", "upstream", "x"), "14"],
  [new Failure("E_INTERNAL", "gate", "x", { status: 503 }), "14"],
  [new Failure("E_TIMEOUT", "upstream", "x"), "4"],
  [new Failure("E_TIMEOUT", "client", "x"), "4"],
  [new Failure("E_INTERNAL", "gate", "x"), "13"],
  [new Failure("E_BAD_REQUEST", "client", "x"), "13"],
] as const) {
  test(`grpcAnswer: ${failure.code} (${failure.status ?? failure.fault}) is status ${status}`, () => {
    const fields = fieldsOf(answerFailure(failure, ABOUT));
    assert.equal(fields["grpc-status"], status);
    assert.equal(fields["x-sallyport-failure"], failure.code);
    assert.equal(String(fields["grpc-message"]).split(": ")[0], failure.code);
  });
}
