/** Names of fields that hold secrets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { namesSecret } from "../../src/secrets/secret-field.ts";

test("namesSecret: credentials of every usual name", () => {
  for (const name of [
    "Authorization",
    "authorization",
    "Cookie",
    "X-Api-Key",
    "x-goog-api-key",
    "X_API_KEY",
    "ApiKey",
    "X-Auth-Token",
    "Private-Token",
    "X-Amz-Signature",
    "token",
    "X-Session-Id",
    "X-Access-Key",
  ]) {
    assert.ok(namesSecret(name), name);
  }
});

test("namesSecret: other fields", () => {
  for (const name of ["Accept", "X-Client", "User-Agent", "Idempotency-Key", "X-Request-Id"])
    assert.ok(!namesSecret(name), name);
});
