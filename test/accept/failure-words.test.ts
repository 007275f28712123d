import assert from "node:assert/strict";
import { test } from "node:test";
import { failureWords } from "../../src/accept/failure-words.ts";
import { Failure } from "../../src/model/failure.ts";

test("failureWords tells a slow client from a slow upstream without being given a status", () => {
  assert.equal(failureWords(new Failure("E_TIMEOUT", "client", "Slow")).status, 408);
  const { status, message } = failureWords(new Failure("E_TIMEOUT", "upstream", "Slow"));
  assert.deepEqual([status, message], [504, "{host} did not answer in time"]);
});

test("failureWords says what was wrong with a request where its status tells", () => {
  const { message } = failureWords(new Failure("E_BAD_REQUEST", "client", "No", { status: 431 }));
  assert.equal(message, "The request's header fields are too large or too many, so nothing was sent on");
});

test("failureWords advises a retry where the trouble may pass by itself, whatever the code is", () => {
  for (const [status, retry] of [
    [500, false],
    [400, false],
    [503, true],
  ] as const) {
    assert.equal(failureWords(new Failure("E_INTERNAL", "gate", "No", { status })).retry, retry);
  }
});
