/** Names of fields that hold secrets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isSecretKey, keyNamesSecret, namesSecret } from "../../src/secrets/secret-field.ts";

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

test("isSecretKey: what a placeholder stands for, and a passphrase; the field of a rule is called what it likes", () => {
  for (const key of [
    "credentials.slack.value",
    "credentials.a.b.value",
    "upstream.client_certificates.me.passphrase",
  ]) {
    assert.ok(isSecretKey(key), key);
    assert.ok(keyNamesSecret(key), key);
  }
  for (const key of ["network.allowlist[0].transform.value", "credentials.value", "credentials.a.username"]) {
    assert.ok(!isSecretKey(key), key);
    assert.ok(!keyNamesSecret(key), key);
  }
  assert.ok(keyNamesSecret("network.allowlist[0].transform.Authorization"));
  assert.ok(!isSecretKey("network.allowlist[0].transform.Authorization"));
});
