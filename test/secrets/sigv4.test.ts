/** The published example of Signature Version 4 (ListUsers of IAM), and hashes. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { payloadHash, signSigV4 } from "../../src/secrets/sigv4.ts";

const KEYS = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  sessionToken: undefined,
};
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

test("payloadHash: of nothing", () => {
  assert.equal(payloadHash(new Uint8Array()), EMPTY);
});

test("signSigV4: date, hash and signature; the token where there is one; the same at the same time", async () => {
  mock.timers.enable({ apis: ["Date"], now: Date.UTC(2015, 7, 30, 12, 36) });
  const signable = {
    method: "GET",
    path: "/",
    query: { Action: ["ListUsers"], Version: ["2010-05-08"] },
    headers: {
      host: "iam.amazonaws.com",
      "content-type": "application/x-www-form-urlencoded; charset=utf-8",
    },
    payloadHash: EMPTY,
  };
  const scope = { region: "us-east-1", service: "iam" };
  const signed = await signSigV4(signable, KEYS, scope);
  assert.equal(signed["x-amz-date"], "20150830T123600Z");
  assert.match(
    signed["authorization"] ?? "",
    /Credential=AKIDEXAMPLE\/20150830\/us-east-1\/iam\/aws4_request/,
  );
  assert.deepEqual(await signSigV4(signable, KEYS, scope), signed);
  const other = await signSigV4(signable, { ...KEYS, sessionToken: "token" }, scope);
  assert.equal(other["x-amz-security-token"], "token");
  assert.notEqual(other["authorization"], signed["authorization"]);
  mock.timers.reset();
});

test("signSigV4: a query of a thousand names is signed at once", async () => {
  const query = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`name-${at}`, ["x"]]));
  const signable = { method: "GET", path: "/", query, headers: { host: "h" }, payloadHash: EMPTY };
  const scope = { region: "us-east-1", service: "s3" };
  await signSigV4({ ...signable, query: {} }, KEYS, scope);
  const before = process.cpuUsage();
  await signSigV4(signable, KEYS, scope);
  assert.ok(process.cpuUsage(before).user < 300_000);
});
