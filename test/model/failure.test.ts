import assert from "node:assert/strict";
import { test } from "node:test";
import { asFailure, cutOff, Failure } from "../../src/model/failure.ts";

test("Failure carries its code and its fault, and a status and a cause where they are given", () => {
  const cause = new Error("Below");
  const failure = new Failure("E_BAD_REQUEST", "client", "The head is too large", { status: 431, cause });
  assert.ok(failure instanceof Error);
  assert.equal(failure.name, "Failure");
  assert.equal(failure.code, "E_BAD_REQUEST");
  assert.equal(failure.fault, "client");
  assert.equal(failure.message, "The head is too large");
  assert.equal(failure.status, 431);
  assert.equal(failure.cause, cause);
});

test("Failure has no status and no cause of its own", () => {
  const failure = new Failure("E_CONNECT", "upstream", "No address answered");
  assert.equal(failure.status, undefined);
  assert.equal(failure.cause, undefined);
});

test("asFailure keeps a failure, and calls anything else a fault of ours", () => {
  const failure = new Failure("E_TIMEOUT", "client", "Too slow");
  assert.equal(asFailure(failure, "Unused"), failure);
  const bug = new TypeError("bug");
  const { code, fault, message, cause } = asFailure(bug, "The request could not be read");
  assert.deepEqual(
    [code, fault, message, cause],
    ["E_INTERNAL", "gate", "The request could not be read", bug],
  );
});

test("cutOff is the operator's doing, not a fault of ours", () => {
  assert.deepEqual([cutOff().code, cutOff().fault], ["E_INTERNAL", "operator"]);
});
