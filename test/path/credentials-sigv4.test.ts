/** What leaves is signed by AWS Signature Version 4, as botocore, which knows nothing of us, recomputes it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { askInside, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const TABLE = "dynamodb.eu-west-1.amazonaws.com";
const BUCKET = "bucket.s3.eu-west-1.amazonaws.com";
const OPEN = "open.s3.eu-west-1.amazonaws.com";
const HOSTS = [TABLE, BUCKET, OPEN, "lambda.eu-west-1.amazonaws.com"];

/** Signs the request that the origin received, at the time that it says, with the fields that were signed. */
const BOTOCORE = `
import datetime, json, sys
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
order = json.load(sys.stdin)
class Fixed(datetime.datetime):
    @classmethod
    def utcnow(cls): return cls.strptime(order["date"], "%Y%m%dT%H%M%SZ")
    @classmethod
    def now(cls, tz=None): return cls.strptime(order["date"], "%Y%m%dT%H%M%SZ")
stamp = order["date"]
kind = auth.S3SigV4Auth if order["service"] == "s3" else auth.SigV4Auth
signer = kind(Credentials(order["key"], order["secret"], order["token"]), order["service"], order["region"])
request = AWSRequest(method=order["method"], url=order["url"], data=order["body"].encode("latin1"), headers=order["headers"])
request.context["timestamp"] = stamp
canonical = signer.canonical_request(request)
print(signer.signature(signer.string_to_sign(request, canonical), request))
`;

let internet: Internet;
let gate: Gate;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of HOSTS) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: HOSTS, bound: true });
  const keys = { type: "aws_sigv4", access_key_id: "AKIDEXAMPLE", secret_access_key: SECRET };
  const place = { ...keys, region: "eu-west-1" };
  const credentials = [
    { id: "table", ...place, service: "dynamodb", session_token: `\${env:SESSION}` },
    { id: "bucket", ...place, service: "s3" },
    { id: "open", ...place, service: "s3", unsigned_payload: true },
    { id: "lost", ...place, service: "lambda", session_token: `\${env:ABSENT}` },
  ];
  const allowlist = [
    { domain: TABLE, credential: "table" },
    { domain: BUCKET, credential: "bucket" },
    { domain: OPEN, credential: "open" },
    { domain: "lambda.eu-west-1.amazonaws.com", credential: "lost" },
  ];
  gate = await startGate(
    internet,
    {
      workers: 1,
      network: { allowlist },
      credentials,
      limits: { signed_body_bytes: "64KiB", signed_bytes_per_sandbox: "150KiB" },
    },
    { env: { SESSION: "session-token-of-the-test" } },
  );
});
after(() => internet.close());

/** The signature that botocore finds for what arrived. */
function recomputed(request: Message, host: string, service: string, token: string | null): string {
  const [method = "", target = ""] = request.start.split(" ");
  const authorization = oneValue(request, "authorization") ?? "";
  const names = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(";") ?? [];
  const headers = Object.fromEntries(names.map((name) => [name, valuesOf(request, name).join(",")]));
  const order = {
    method,
    url: `https://${host}${target}`,
    body: request.body,
    headers,
    date: oneValue(request, "x-amz-date"),
    key: "AKIDEXAMPLE",
    secret: internet.canary.secret,
    token,
    service,
    region: "eu-west-1",
  };
  return execFileSync("/usr/bin/python3", ["-c", BOTOCORE], { input: JSON.stringify(order) })
    .toString()
    .trim();
}

function signatureOf(request: Message): string | undefined {
  return /Signature=([0-9a-f]{64})$/.exec(oneValue(request, "authorization") ?? "")?.[1];
}

async function send(
  host: string,
  start: string,
  body: string,
  ...lines: readonly string[]
): Promise<Message> {
  const bytes = head(`${start} HTTP/1.1`, `Host: ${host}`, ...lines) + body;
  const answer = await askInside(internet, gate, host, bytes);
  assert.equal(statusOf(answer), 200, answer.body);
  const request = origin.requests.at(-1);
  assert.ok(request);
  return request;
}

test("a body and a session token: the client's own signature is replaced by one that botocore finds too", async () => {
  const request = await send(
    TABLE,
    "POST /a%20b/./c?x=2&x=1&a",
    '{"TableName":"t"}',
    "Content-Length: 17",
    "Content-Type: application/x-amz-json-1.0",
    "X-Amz-Target: DynamoDB_20120810.ListTables",
    "X-Amz-Date: 20200101T000000Z",
    "X-Amz-Security-Token: theirs",
    "Authorization: AWS4-HMAC-SHA256 Credential=theirs",
  );
  assert.deepEqual(valuesOf(request, "x-amz-security-token"), ["session-token-of-the-test"]);
  assert.equal(valuesOf(request, "authorization").length, 1);
  assert.match(oneValue(request, "authorization") ?? "", /x-amz-target/);
  assert.equal(signatureOf(request), recomputed(request, TABLE, "dynamodb", "session-token-of-the-test"));
  const record = await gate.record({ host: TABLE });
  assert.deepEqual(record["injected"], [
    "Authorization",
    "X-Amz-Date",
    "X-Amz-Content-Sha256",
    "X-Amz-Security-Token",
  ]);
});

test("S3: the path is signed as it is, with the body's hash", async () => {
  const request = await send(
    BUCKET,
    "PUT /a%20b//c?list-type=2&prefix=a%2Fb",
    "5\r\nhello\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked",
  );
  assert.equal(request.start, "PUT /a%20b//c?list-type=2&prefix=a%2Fb HTTP/1.1");
  assert.equal(request.body, "hello");
  assert.equal(oneValue(request, "content-length"), "5");
  assert.equal(signatureOf(request), recomputed(request, BUCKET, "s3", null));
  const plain = await send(BUCKET, "GET /", "");
  assert.equal(signatureOf(plain), recomputed(plain, BUCKET, "s3", null));
});

test("a body that the client sends only once it is told to", async () => {
  const wire = await inside(internet, gate, BUCKET);
  const start = head("PUT /x HTTP/1.1", `Host: ${BUCKET}`, "Content-Length: 5", "Expect: 100-continue");
  assert.equal(statusOf(await wire.send(start)), 100);
  assert.equal(statusOf(await wire.send("hello")), 200);
  wire.destroy();
  assert.equal(origin.requests.at(-1)?.body, "hello");
});

test("S3 with an unsigned payload: a body of any size, which is not held", async () => {
  const body = "x".repeat(100_000);
  const request = await send(OPEN, "PUT /big", body, `Content-Length: ${body.length}`);
  assert.equal(oneValue(request, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
  assert.equal(request.body.length, body.length);
  assert.equal(signatureOf(request), recomputed(request, OPEN, "s3", null));
});

for (const [what, start, lines, body, reason] of [
  ["a body over the limit", "PUT /", ["Content-Length: 70000"], "x".repeat(70_000), "limit-exceeded"],
  ["a presigned URL", "GET /?X-Amz-Signature=a", [], "", "rule-denies"],
  ["a query that is no UTF-8", "GET /?a=%ff", [], "", "rule-denies"],
  ["STS, by its action in the query", "GET /?Action=AssumeRole", [], "", "rule-denies"],
  ["STS, by its action in a form", "POST /", ["Content-Length: 17"], "Action=AssumeRole", "rule-denies"],
  [
    "chunks with signatures",
    "PUT /",
    ["X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"],
    "",
    "rule-denies",
  ],
] as const) {
  test(`${what} is refused as ${reason}, and nothing leaves`, async () => {
    const sent = origin.requests.length;
    const answer = await askInside(
      internet,
      gate,
      BUCKET,
      head(`${start} HTTP/1.1`, `Host: ${BUCKET}`, ...lines) + body,
    );
    assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-reason")], [403, reason]);
    assert.equal(origin.requests.length, sent);
  });
}

test("a key that cannot be had refuses its rule", async () => {
  const answer = await askInside(internet, gate, "lambda.eu-west-1.amazonaws.com");
  assertRefused(answer, { status: 403, reason: "secret-unavailable" });
});

test("bodies that are held at once have room together: one too many is refused, and its room is free again", async () => {
  const half = head("PUT /k HTTP/1.1", `Host: ${BUCKET}`, "Content-Length: 60001") + "a".repeat(60_000);
  const wires = [];
  for (let at = 0; at < 3; at++) {
    const wire = await inside(internet, gate, BUCKET);
    wire.write(half);
    wires.push(wire);
  }
  const answers = wires.map((wire) => wire.response({ ms: 20_000 }));
  const [refused, loser] = await Promise.race(answers.map(async (answer, at) => [await answer, at] as const));
  assertRefused(refused, { status: 403, reason: "limit-exceeded" });
  for (const [at, wire] of wires.entries()) if (at !== loser) wire.write("b");
  const statuses = (await Promise.all(answers)).map(statusOf).toSorted();
  assert.deepEqual(statuses, [200, 200, 403]);
  assert.equal(statusOf(await askInside(internet, gate, BUCKET, `${half}b`)), 200);
});
