/** Who asks at the base-URL door: the source, or a token in the path that goes no further. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, REVERSE, REVERSE_LISTEN } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { fromEnv, SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";
const OTHER_SECRET = "the-other-sandbox-s-secret";
const TOKENS = { ONE: "token-of-one/with?odd%bytes", TWO: "token-of-number-two" };

let internet: Internet;
let gate: Gate;
let origin: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, {
    tls: [HOST],
    bound: true,
    answer: () => respond("ok", "302 Found", ["Location: /next", "Set-Cookie: a=b; Path=/"]),
  });
  packets = await watchPackets(internet);
  const rule = (Authorization: string) => ({ allowlist: [{ domain: HOST, transform: { Authorization } }] });
  gate = await startGate(
    internet,
    {
      ...REVERSE_LISTEN,
      sandboxes: [
        { id: "one", token: fromEnv("ONE"), network: rule(SECRET) },
        { id: "two", token: fromEnv("TWO"), network: rule(fromEnv("OTHER_SECRET")) },
        { id: "near", source: ["127.0.0.8"], network: rule(SECRET) },
        { id: "far", source: ["127.0.0.9"], token: fromEnv("TWO"), network: rule(SECRET) },
        { id: "shut", source: ["127.0.0.7"] },
      ],
    },
    { env: { ...TOKENS, OTHER_SECRET } },
  );
});
after(() => internet.close());

function prefix(id: string, token: string): string {
  return `/~${id}:${encodeURIComponent(token)}`;
}

function injected(): readonly string[] {
  return valuesOf(origin.requests.at(-1) ?? { fields: [] }, "authorization");
}

describe("a token in the path", () => {
  test("names the sandbox, request by request, on one connection", async () => {
    const wire = await dialReverse(internet);
    const bases = [prefix("one", TOKENS.ONE), prefix("two", TOKENS.TWO), prefix("one", TOKENS.ONE)];
    const secrets = [internet.canary.secret, OTHER_SECRET, internet.canary.secret];
    for (const [index, base] of bases.entries()) {
      const answer = await wire.send(head(`GET ${base}/${HOST}/turn?n=${index} HTTP/1.1`, OWN_HOST));
      assert.equal(statusOf(answer), 302);
      assert.deepEqual(injected(), [secrets[index]]);
    }
    for (const sandbox of ["one", "two", "one"]) await gate.record({ path: "/turn", sandbox });
  });

  test("is neither forwarded nor recorded nor logged", async () => {
    await askReverse(internet, `GET ${prefix("two", TOKENS.TWO)}/${HOST}/quiet`);
    await askReverse(internet, `GET ${prefix("two", TOKENS.TWO)}/evil.example.org/quiet`);
    await askReverse(internet, `GET ${prefix("two", TOKENS.TWO)}/`);
    await gate.record({ path: "/quiet", verdict: "deny" });
    await gate.record({ failure: "E_BAD_REQUEST" });
    const written = JSON.stringify(gate.records) + gate.log;
    for (const token of [TOKENS.TWO, "~two"]) assert.ok(!written.includes(token), token);
    for (const { received } of origin.connections) assert.doesNotMatch(received, /number-two|~two/);
    assert.equal(origin.requests.at(-1)?.start, "GET /quiet HTTP/1.1");
  });

  test("comes back in what the client must ask next, as the client wrote it", async () => {
    const base = `${prefix("one", TOKENS.ONE)}/${HOST}`;
    const answer = await askReverse(internet, `GET ${base}/v1`);
    assert.equal(oneValue(answer, "location"), `${base}/next`);
    assert.equal(oneValue(answer, "set-cookie"), `a=b; Path=${base}`);
  });
});

describe("a client that is no sandbox", () => {
  for (const [what, base] of Object.entries({
    "no token": "",
    "a wrong token": prefix("one", TOKENS.TWO),
    "a token that is only the beginning": prefix("two", "token-of-number-tw"),
    "an unknown sandbox": prefix("none", TOKENS.TWO),
    "an empty token": prefix("two", ""),
    "no colon": "/~two",
    "an empty prefix": "/~",
    "the token of a sandbox with another source": prefix("far", TOKENS.TWO),
    "a token for one that has none": prefix("near", ""),
  })) {
    test(`gets 407 with ${what}, and nothing leaves`, async () => {
      await packets.take();
      const answer = await askReverse(internet, `GET ${base}/${HOST}/`);
      assertRefused(answer, { status: 407, reason: "identity-unknown", host: HOST });
      assert.equal(oneValue(answer, "proxy-authenticate"), 'Basic realm="Sallyport"');
      assert.match(answer.body, /before the host of a base URL/);
      assert.deepEqual(await packets.take(), []);
    });
  }

  test("gets 407 with a proxy's credentials: this is no proxy", async () => {
    const basic = Buffer.from(`two:${TOKENS.TWO}`).toString("base64");
    const answer = await askReverse(internet, `GET /${HOST}/`, [`Proxy-Authorization: Basic ${basic}`]);
    assertRefused(answer, { status: 407, reason: "identity-unknown" });
  });

  test("does not learn a sandbox's policy by asking for another's host", async () => {
    const answer = await askReverse(internet, `GET ${prefix("one", "wrong")}/evil.example.org/`);
    assertRefused(answer, { status: 407, reason: "identity-unknown" });
  });
});

describe("a source", () => {
  test("names the sandbox where it is one's alone", async () => {
    for (const [from, status] of [
      ["127.0.0.8", 302],
      ["127.0.0.7", 403],
      ["127.0.0.6", 407],
    ] as const) {
      const wire = await dial(internet, { ...REVERSE, from });
      const answer = await wire.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST));
      assert.equal(statusOf(answer), status, from);
      wire.destroy();
    }
    await gate.record({ sandbox: "near", client: "127.0.0.8", verdict: "allow" });
    await gate.record({ sandbox: "shut", reason: "network-disabled" });
  });
});
