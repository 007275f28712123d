/** A secret goes once with each request of the client's: nothing is answered from a store, nothing is sent twice. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askInside, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "api.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, {
    tls: [HOST],
    bound: true,
    answer: () => respond("whole", "200 OK", ["Cache-Control: public, max-age=3600", 'ETag: "1"']),
  });
  const credentials = [{ id: "api", type: "bearer_token", token: SECRET }];
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, credential: "api" }] },
    credentials,
  });
});
after(() => internet.close());

test("an answer that may be stored is not: each request leaves, with what it asks for and the secret once", async () => {
  for (const line of [
    "X-First: 1",
    "Range: bytes=0-1",
    'If-None-Match: "1"',
    "Cache-Control: only-if-cached",
  ]) {
    const seen = origin.requests.length;
    const answer = await askInside(internet, gate, HOST, head("GET / HTTP/1.1", `Host: ${HOST}`, line));
    assert.equal(statusOf(answer), 200, line);
    assert.equal(origin.requests.length, seen + 1, line);
    const request = origin.requests.at(-1);
    assert.ok(request);
    const [name = "", value] = line.split(": ");
    assert.deepEqual(valuesOf(request, name.toLowerCase()), [value]);
    assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
  }
});

test("a client that waits to be told to continue: one request, one secret", async () => {
  const seen = origin.requests.length;
  const lines = ["POST / HTTP/1.1", `Host: ${HOST}`, "Expect: 100-continue", "Content-Length: 2"];
  assert.ok([100, 200].includes(statusOf(await askInside(internet, gate, HOST, `${head(...lines)}hi`))));
  await origin.until("the request", () => origin.requests.length > seen);
  assert.equal(origin.requests.length, seen + 1);
  const request = origin.requests.at(-1);
  assert.ok(request);
  assert.equal(request.body, "hi");
  assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
});
