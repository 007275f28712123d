import assert from "node:assert/strict";
import { test } from "node:test";
import { ALERT, tlsAlert } from "../../src/wire/tls-alert.ts";

test("tlsAlert() is one record with one fatal alert", () => {
  assert.deepEqual([...tlsAlert(ALERT.unrecognizedName)], [21, 3, 3, 0, 2, 2, 112]);
  assert.deepEqual([...tlsAlert(ALERT.accessDenied)], [21, 3, 3, 0, 2, 2, 49]);
  assert.deepEqual([...tlsAlert(ALERT.decodeError)], [21, 3, 3, 0, 2, 2, 50]);
  assert.deepEqual([...tlsAlert(ALERT.handshakeFailure)], [21, 3, 3, 0, 2, 2, 40]);
});
