/** Answers of token endpoints: what is taken of them, and what is wrong with them, unquoted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkedToken, fieldsOf, readGrant } from "../../src/secrets/token-answer.ts";

function grant(text: string, status = 200) {
  return readGrant({ status, text }, "access_token");
}

test("readGrant: JSON and forms, lifetimes as numbers and as digits, at most a day", () => {
  assert.deepEqual(grant('{"access_token":"t","expires_in":60,"refresh_token":"r"}'), {
    token: "t",
    lifetime: 60_000,
    refreshToken: "r",
  });
  assert.deepEqual(grant("access_token=t&expires_in=60"), {
    token: "t",
    lifetime: 60_000,
    refreshToken: undefined,
  });
  assert.equal(grant('{"access_token":"t"}').lifetime, 600_000);
  assert.equal(grant('{"access_token":"t","expires_in":1e9}').lifetime, 86_400_000);
  assert.equal(grant('{"access_token":"t","refresh_token":"a\\nb"}').refreshToken, undefined);
  assert.equal(readGrant({ status: 200, text: '{"id_token":"i"}' }, "id_token").token, "i");
});

test("readGrant: failures name a code of the standard's and nothing else", () => {
  assert.throws(() => grant('{"error":"invalid_grant"}', 400), /answered with 400, invalid_grant$/);
  assert.throws(() => grant('{"error":"s3cr3t"}', 400), /answered with 400$/);
  assert.throws(() => grant("[1]"), /without a token/);
  assert.throws(() => grant("3"), /without a token/);
  for (const wrong of ["0", "-1", '"x"', "{}"]) {
    assert.throws(() => grant(`{"access_token":"t","expires_in":${wrong}}`), /expired already/);
  }
});

test("checkedToken: a line break in a token is no token", () => {
  assert.throws(() => checkedToken("a\r\nX: y"), /holds a line break/);
  assert.equal(checkedToken("a"), "a");
  assert.deepEqual(fieldsOf("null"), {});
});
