/** Placeholders of credentials: replaced for the hosts and in the places that are trusted, refused everywhere else. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askInside, head } from "../support/ask.ts";
import { type Gate, SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import { createH2Origin, type H2Origin, valuesIn } from "../support/h2-origin.ts";
import { runJail, setUpJail } from "../support/jail.ts";
import { type Message, oneValue, statusOf } from "../support/message-reader.ts";
import { createOrigin, type Origin, respond } from "../support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4, PUBLIC_V6 } from "../support/private-internet.ts";

const TRUSTED = "trusted.example.com";
const OTHER = "other.example.com";
const H2 = "h2.example.com";
const PLACEHOLDER = "__SALLYPORT_CRED_all__";
const HEADER_ONLY = "__SALLYPORT_CRED_head__";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let h2: H2Origin;
let h2Body = "";

before(async () => {
  internet = await createInternet();
  for (const name of [TRUSTED, OTHER]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, {
    tls: [TRUSTED, OTHER],
    bound: true,
    answer: (request) => respond(`you said ${request.fields.join()} ${request.body}`),
  });
  internet.dns.set(H2, { AAAA: [PUBLIC_V6[0]] });
  h2 = await createH2Origin(internet, {
    address: PUBLIC_V6[0],
    names: [H2],
    bound: true,
    serve: (stream) => {
      h2Body = "";
      stream.on("data", (bytes: Buffer) => {
        h2Body += bytes.toString("latin1");
      });
      stream.on("end", () => {
        // What was broken off ends too.
        if (stream.aborted || stream.destroyed) return;
        stream.respond({ ":status": 200 });
        stream.end(h2Body);
      });
    },
  });
  const common = { type: "environment_variable", value: SECRET, trusted_domains: [TRUSTED, H2] };
  gate = await startGate(internet, {
    workers: 1,
    credentials: [
      { id: "all", ...common, injection_location: ["header", "query", "body"] },
      { id: "head", ...common, injection_location: "header" },
    ],
    network: { allowlist: [{ domain: TRUSTED }, { domain: H2 }, { domain: OTHER, intercept: "always" }] },
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
  const record = await gate.record({ method: "GET", verdict: "allow" });
  assert.deepEqual([record["path"], record["injected"]], ["/p", ["Authorization", ":query"]]);
  const other = await gate.record({ method: "POST", verdict: "allow" });
  assert.deepEqual(other["injected"], [":body"]);
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

test("what is put in does not come back, though the origin repeats all of it", async () => {
  const { secret } = internet.canary;
  const answer = await post(TRUSTED, `t=${PLACEHOLDER}`, `Authorization: Bearer ${HEADER_ONLY}`);
  assert.equal(origin.requests.at(-1)?.body, `t=${secret}`);
  assert.match(answer.body, /you said/);
  const both = await gate.record({ method: "POST", verdict: "allow" });
  assert.deepEqual(both["injected"], ["Authorization", ":body"]);
  assert.ok(!answer.body.includes(secret));
});

test("over HTTP/2 it is replaced in a field and a body in pieces, and a stream that holds it elsewhere is refused", async () => {
  const { secret } = internet.canary;
  const client = await openH2(internet, gate, H2);
  const length = String(PLACEHOLDER.length + 4);
  const pairs = [":method", "POST", "authorization", `Bearer ${HEADER_ONLY}`, "content-length", length];
  const stream = client.open(pairs);
  const closed = new Promise((resolve) => stream.once("close", resolve));
  for (const piece of `ab${PLACEHOLDER}cd`) stream.write(piece);
  stream.end();
  stream.resume();
  await closed;
  assert.equal(h2Body, `ab${secret}cd`);
  assert.deepEqual(valuesIn(h2.requests[0] ?? [], "authorization"), [`Bearer ${secret}`]);
  const refused = await client.ask([":method", "POST"], `x${HEADER_ONLY}`);
  assert.equal(refused.status, 403);
  assert.match(refused.body, /placeholder-misplaced/);
});

test("from inside a jail, a program finds the placeholder in its variable and never the secret", async () => {
  const setup = setUpJail(internet, {
    credentials: [{ id: "head", type: "environment_variable", value: SECRET, trusted_domains: [TRUSTED] }],
    sandboxes: [
      { id: "one", env: { TOKEN: { credential: "head" } }, network: { allowlist: [{ domain: TRUSTED }] } },
    ],
  });
  const program = `echo "$TOKEN"; curl -sS --max-time 10 -o /dev/null -H "Authorization: Bearer $TOKEN" https://${TRUSTED}/jail`;
  const { code, stdout, stderr, records } = await runJail(internet, setup, ["sh", "-c", program], {
    options: ["--sandbox", "one"],
  });
  assert.deepEqual([code, stdout], [0, `${HEADER_ONLY}\n`], stderr);
  const got = origin.requests.at(-1);
  assert.ok(got);
  assert.equal(oneValue(got, "authorization"), `Bearer ${internet.canary.secret}`);
  assert.deepEqual(records.at(-1)?.["injected"], ["Authorization"]);
});
