/** What is signed of a head, and what is refused in words that a client may read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestHead } from "../../src/model/exchange.ts";
import type { SigningSource } from "../../src/model/signing.ts";
import { claimedHash, signableOf, TRAILING, withSignature } from "../../src/transform/signable.ts";

const SIGNING: SigningSource = {
  id: "c",
  accessKeyId: "a",
  secretAccessKey: "b",
  sessionToken: undefined,
  region: "r",
  service: "s3",
  unsignedPayload: false,
};

function headOf(target: string, ...lines: readonly (readonly [string, string])[]): RequestHead {
  const fields = lines.map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
  return { method: "GET", target, minor: 1, fields };
}

test("signableOf: path as it is, query decoded, its fields joined and no others", () => {
  const head = headOf(
    "/a%20b?x=2&x=1&&flag&k%2F=v%20w=",
    ["Host", "h"],
    ["X-Amz-Meta", "1"],
    ["x-amz-meta", "2"],
    ["Content-Type", "t"],
    ["Content-MD5", "m"],
    ["X-Amz-Date", "theirs"],
    ["X_Amz_Date", "theirs"],
    ["Accept", "a"],
  );
  const { parts } = signableOf(head, SIGNING) as { parts: { path: string; query: object; headers: object } };
  assert.equal(parts.path, "/a%20b");
  assert.deepEqual({ ...parts.query }, { x: ["2", "1"], flag: [""], "k/": ["v w="] });
  assert.deepEqual(parts.headers, {
    host: "h",
    "x-amz-meta": "1,2",
    "content-type": "t",
    "content-md5": "m",
  });
});

test("signableOf: what cannot be signed says why", () => {
  const why = (head: RequestHead, signing = SIGNING): string | undefined => signableOf(head, signing).problem;
  assert.match(why(headOf("/?a=%ff")) ?? "", /percent-encoded/);
  assert.match(why(headOf("/?%ff=a")) ?? "", /percent-encoded/);
  assert.match(why(headOf("/?x-amz-credential=a")) ?? "", /presigned/);
  assert.match(why(headOf("/?Action=GetSessionToken")) ?? "", /to get others/);
  assert.match(why(headOf("/", ["Host", "sts.eu-west-1.amazonaws.com"])) ?? "", /to get others/);
  assert.equal(why(headOf("/?Action=ListUsers", ["Host", "iam.amazonaws.com"])), undefined);
  const chunks = ["X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"] as const;
  assert.match(why(headOf("/", chunks)) ?? "", /in chunks/);
  const trailing = headOf("/", ["X-Amz-Content-Sha256", TRAILING]);
  assert.match(why(trailing) ?? "", /in chunks/);
  assert.equal(why(trailing, { ...SIGNING, unsignedPayload: true }), undefined);
  assert.equal(claimedHash(trailing), TRAILING);
});

test("withSignature: the client's own fields go, under any spelling, and in HTTP/2 it is not remembered", () => {
  const head = headOf(
    "/",
    ["Authorization", "x"],
    ["X_Amz_Date", "y"],
    ["Expect", "100-continue"],
    ["A", "b"],
  );
  const signed = withSignature(head, { authorization: "s" });
  assert.deepEqual(
    signed.fields.map(({ key, value }) => [key, value]),
    [
      ["a", "b"],
      ["authorization", "s"],
    ],
  );
  assert.equal(signed.sensitive, undefined);
  assert.deepEqual(withSignature({ ...head, sensitive: ["a"] }, { authorization: "s" }).sensitive, [
    "a",
    "authorization",
  ]);
});

test("signableOf: no query that would take long to sign, and no key of a user", () => {
  const long = `/?${"a&".repeat(1_000)}`;
  assert.match(signableOf(headOf(long, ["Host", "h"]), SIGNING).problem ?? "", /1000 parameters/);
  assert.equal(signableOf(headOf(long.slice(0, -2), ["Host", "h"]), SIGNING).problem, undefined);
  const key = headOf("/?Action=CreateAccessKey&UserName=x", ["Host", "iam.amazonaws.com"]);
  assert.match(signableOf(key, SIGNING).problem ?? "", /to get others/);
});
