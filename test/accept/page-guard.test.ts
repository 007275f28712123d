import assert from "node:assert/strict";
import { test } from "node:test";
import { isCrossSite } from "../../src/accept/page-guard.ts";
import { Failure } from "../../src/model/failure.ts";

const PLACE = { address: "127.0.0.1", port: 8081, everywhere: false };
const OWN = "127.0.0.1:8081";

function fieldsOf(...lines: readonly (readonly [name: string, value: string])[]) {
  return lines.map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
}

test("isCrossSite: the listener is asked by its address or as localhost, with its port", () => {
  for (const host of [OWN, "localhost:8081", "LOCALHOST:8081"])
    assert.equal(isCrossSite(host, [], PLACE), false);
  for (const host of [
    "127.0.0.1",
    "127.0.0.2:8081",
    "localhost:80",
    "[::1]:8081",
    "a.localhost:8081",
    "evil.test:8081",
  ]) {
    assert.equal(isCrossSite(host, [], PLACE), true, host);
  }
  assert.equal(isCrossSite(undefined, [], PLACE), true);
});

test("isCrossSite: at every address any literal is the listener's own, and no name", () => {
  const place = { ...PLACE, everywhere: true };
  for (const host of ["192.0.2.1:9000", "[2001:db8::1]", "localhost"])
    assert.equal(isCrossSite(host, [], place), false);
  assert.equal(isCrossSite("evil.test:8081", [], place), true);
});

test("isCrossSite: port 80 may be left out", () => {
  const place = { ...PLACE, port: 80 };
  assert.equal(isCrossSite("127.0.0.1", fieldsOf(["Origin", "http://127.0.0.1"]), place), false);
});

test("isCrossSite: an Origin is the listener's own or another's", () => {
  assert.equal(isCrossSite(OWN, fieldsOf(["Origin", `http://${OWN}`]), PLACE), false);
  assert.equal(isCrossSite(OWN, fieldsOf(["Origin", "HTTP://127.0.0.1:8081"]), PLACE), false);
  for (const origin of [
    "",
    "null",
    `https://${OWN}`,
    "http://127.0.0.1:3000",
    `http://${OWN}.evil.test`,
    `http://${OWN}, a`,
  ]) {
    assert.equal(isCrossSite(OWN, fieldsOf(["Origin", origin]), PLACE), true, origin);
  }
});

test("isCrossSite: Sec-Fetch-Site says whose page it is, and every one of them counts", () => {
  for (const site of ["same-origin", "none"]) {
    assert.equal(isCrossSite(OWN, fieldsOf(["Sec-Fetch-Site", site]), PLACE), false);
  }
  for (const site of ["same-site", "cross-site", "", "other"]) {
    assert.equal(
      isCrossSite(OWN, fieldsOf(["sec-fetch-site", "none"], ["Sec-Fetch-Site", site]), PLACE),
      true,
      site,
    );
  }
});

test("isCrossSite throws where Host is no authority", () => {
  assert.throws(() => isCrossSite("127.1:8081", [], PLACE), Failure);
});
