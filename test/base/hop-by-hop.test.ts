import assert from "node:assert/strict";
import { test } from "node:test";
import { isConnectionSpecific, nominatedKeys } from "../../src/base/hop-by-hop.ts";
import type { Field } from "../../src/model/exchange.ts";

test("isConnectionSpecific: knows the fields of RFC 9110 section 7.6.1 and their older kin (F03)", () => {
  for (const key of [
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
  ]) {
    assert.equal(isConnectionSpecific(key), true, key);
  }
  for (const key of ["http2-settings", "transfer-encoding", "proxy-authenticate"]) {
    assert.equal(isConnectionSpecific(key), true, key);
  }
});

test("isConnectionSpecific: leaves fields of the message alone", () => {
  for (const key of ["authorization", "content-length", "host", "trailer", "proxy-status", "via"]) {
    assert.equal(isConnectionSpecific(key), false, key);
  }
});

test("nominatedKeys: is undefined where nothing but the connection's own options are named", () => {
  assert.equal(nominatedKeys([]), undefined);
  assert.equal(
    nominatedKeys([field("X-A", "connection"), field("Connection", "close, Keep-Alive")]),
    undefined,
  );
});

test("nominatedKeys: joins every Connection field, also where the first is empty (golang/go#46313)", () => {
  const keys = nominatedKeys([
    field("Connection", ""),
    field("CONNECTION", "X-One,, x-two "),
    field("Connection", "close, Authorization"),
  ]);
  assert.deepEqual([...(keys ?? [])], ["x-one", "x-two", "authorization"]);
});

function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}
