/** Placeholders of credentials: replaced for the hosts and in the places that are trusted, refused everywhere else. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askInside, head } from "../support/ask.ts";
import { type Gate, SECRET, startGate } from "../support/gate.ts";
import { type Message, oneValue, statusOf } from "../support/message-reader.ts";
import { createOrigin, type Origin } from "../support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../support/private-internet.ts";

const TRUSTED = "trusted.example.com";
const OTHER = "other.example.com";
const PLACEHOLDER = "__SALLYPORT_CRED_all__";
const HEADER_ONLY = "__SALLYPORT_CRED_head__";

let internet: Internet;
let gate: Gate;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [TRUSTED, OTHER]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [TRUSTED, OTHER], bound: true });
  const common = { type: "environment_variable", value: SECRET, trusted_domains: [TRUSTED] };
  gate = await startGate(internet, {
    workers: 1,
    credentials: [
      { id: "all", ...common, injection_location: ["header", "query", "body"] },
      { id: "head", ...common, injection_location: "header" },
    ],
    network: { allowlist: [{ domain: TRUSTED }, { domain: OTHER, intercept: "always" }] },
  });
});
after(() => internet.close());

function post(host: string, body: string, ...lines: readonly string[]): Promise<Message> {
  const text = head("POST /p HTTP/1.1", `Host: ${host}`, `Content-Length: ${body.length}`, ...lines) + body;
  return askInside(internet, gate, host, text);
}

function get(host: string, target: string, ...lines: readonly string[]): Promise<Message> {
  return askInside(internet, gate, host, head(`GET ${target} HTTP/1.1`, `Host: ${host}`, ...lines));
}

test("a trusted host gets the secret in a field, inside Basic, in the query and in the body", async () => {
  const secret = internet.canary.secret;
  const basic = Buffer.from(`user:${HEADER_ONLY}`).toString("base64");
  assert.equal(statusOf(await get(TRUSTED, `/p?k=${PLACEHOLDER}`, `Authorization: Basic ${basic}`)), 200);
  const got = origin.requests.at(-1);
  assert.ok(got);
  assert.equal(oneValue(got, "authorization"), `Basic ${Buffer.from(`user:${secret}`).toString("base64")}`);
  assert.equal(got.start, `GET /p?k=${encodeURIComponent(secret)} HTTP/1.1`);
  const sent = await post(TRUSTED, `{"t":"${PLACEHOLDER}"}`, "Content-Type: application/json");
  assert.equal(statusOf(sent), 200, sent.body);
  assert.equal(origin.requests.at(-1)?.body, JSON.stringify({ t: secret }));
  const record = gate.records.at(-1);
  assert.equal(record?.["verdict"], "allow");
});

test("elsewhere the request is refused, and none of it looks whole to an origin", async () => {
  const before = origin.requests.length;
  for (const answer of [
    await get(OTHER, "/p", `Authorization: Bearer ${PLACEHOLDER}`),
    await get(TRUSTED, `/${PLACEHOLDER}`),
    await get(TRUSTED, "/p", `Cookie: a=${PLACEHOLDER}`),
    await get(TRUSTED, `/p?k=${HEADER_ONLY}`),
    await post(OTHER, `abc${PLACEHOLDER}`),
    await post(TRUSTED, `abc${HEADER_ONLY}`),
    await post(TRUSTED, "abc", "Content-Encoding: gzip"),
  ]) {
    assert.equal(statusOf(answer), 403);
    assert.equal(oneValue(answer, "x-sallyport-reason"), "placeholder-misplaced");
  }
  assert.equal(origin.requests.length, before);
});
