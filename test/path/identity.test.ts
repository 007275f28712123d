/** Where sandboxes are configured, a client is one of them or gets nothing; and they share nothing (L14, L21). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askPlain, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromEnv, SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const HOST = "api.example.com";
const OTHER_SECRET = "the-other-sandbox-s-secret";
const TOKENS = { ONE: "token-of-one", TWO: "token-of-two", FAR: "token-of-far" };

let internet: Internet;
let gate: Gate;
let origin: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  internet.dns.set("top.example.com", { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST], bound: true });
  await createOrigin(internet, {});
  packets = await watchPackets(internet);
  const rule = (Authorization: string) => ({ allowlist: [{ domain: HOST, transform: { Authorization } }] });
  gate = await startGate(
    internet,
    {
      network: { allowlist: [{ domain: "top.example.com" }], denylist: [{ domain: "never.example.com" }] },
      sandboxes: [
        { id: "one", token: fromEnv("ONE"), network: rule(SECRET) },
        { id: "two", token: fromEnv("TWO"), network: rule(fromEnv("OTHER_SECRET")) },
        { id: "far", source: ["127.0.0.9"], token: fromEnv("FAR"), network: rule(SECRET) },
        { id: "near", source: ["127.0.0.8"], network: rule(SECRET) },
        { id: "shut", token: "literal-token", source: ["127.0.0.7"] },
        { id: "open", token: "open-token", network: { allowlist: [{ domain: "*" }] } },
      ],
    },
    { env: { ...TOKENS, OTHER_SECRET } },
  );
});
after(() => internet.close());

function credentials(id: string, token: string): string {
  return `Proxy-Authorization: Basic ${Buffer.from(`${id}:${token}`).toString("base64")}`;
}

const STRANGERS: Readonly<Record<string, readonly string[]>> = {
  "no credentials": [],
  "a wrong token": [credentials("one", "token-of-two")],
  "a token that is only the beginning": [credentials("one", "token-of-on")],
  "an unknown sandbox": [credentials("none", TOKENS.ONE)],
  "an empty token": [credentials("near", "")],
  "another scheme": [`Proxy-Authorization: Bearer ${TOKENS.ONE}`],
  "credentials that are no base64": ["Proxy-Authorization: Basic ###"],
  "credentials without a colon": [`Proxy-Authorization: Basic ${Buffer.from("one").toString("base64")}`],
  "the token of a sandbox with another source": [credentials("far", TOKENS.FAR)],
};

describe("a client that is no sandbox", () => {
  for (const [what, lines] of Object.entries(STRANGERS)) {
    test(`gets 407 with ${what}, and nothing leaves`, async () => {
      await packets.take();
      for (const bytes of [
        head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`, ...lines),
        head("GET http://top.example.com/ HTTP/1.1", "Host: top.example.com", ...lines),
      ]) {
        const answer = await askPlain(internet, bytes, { connect: bytes.startsWith("CONNECT") });
        assertRefused(answer, { status: 407, reason: "identity-unknown" });
        assert.match(oneValue(answer, "proxy-authenticate") ?? "", /^Basic realm=/);
      }
      assert.deepEqual(await packets.take(), []);
    });
  }

  test("two fields of credentials are no credentials", async () => {
    const lines = [credentials("one", TOKENS.ONE), credentials("two", TOKENS.TWO)];
    const answer = await askPlain(internet, head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`, ...lines));
    assert.ok([400, 407].includes(statusOf(answer)), answer.head);
  });

  test("a source that belongs to another sandbox contradicts a right token", async () => {
    const wire = await dial(internet, { from: "127.0.0.8" });
    const bytes = head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`, credentials("one", TOKENS.ONE));
    assertRefused(await wire.send(bytes, { connect: true }), { status: 407, reason: "identity-unknown" });
  });
});

async function secretSeen(lines: readonly string[], from?: string): Promise<string> {
  const wire = await dialThrough(internet, `${HOST}:443`, {
    ca: gate.ca,
    lines,
    ...(from === undefined ? {} : { from }),
  });
  const answer = await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`));
  assert.equal(statusOf(answer), 200, answer.body);
  const request = origin.requests.at(-1);
  assert.ok(request);
  assert.deepEqual(valuesOf(request, "proxy-authorization"), []);
  return oneValue(request, "authorization") ?? "";
}

describe("a sandbox", () => {
  test("is known by its token, by its source, or by both, and each gets its own secret", async () => {
    assert.equal(await secretSeen([credentials("one", TOKENS.ONE)]), internet.canary.secret);
    assert.equal(await secretSeen([credentials("two", TOKENS.TWO)]), OTHER_SECRET);
    assert.equal(await secretSeen([], "127.0.0.8"), internet.canary.secret);
    assert.equal(await secretSeen([credentials("far", TOKENS.FAR)], "127.0.0.9"), internet.canary.secret);
    assert.equal((await gate.record({ sandbox: "far" }))["verdict"], "allow");
  });

  test("never uses an upstream connection that another one opened", async () => {
    await secretSeen([credentials("one", TOKENS.ONE)]);
    await secretSeen([credentials("two", TOKENS.TWO)]);
    await secretSeen([credentials("one", TOKENS.ONE)]);
    const mixed = origin.connections.filter(
      ({ requests }) => new Set(requests.map((request) => oneValue(request, "authorization"))).size > 1,
    );
    assert.deepEqual(mixed, []);
    assert.ok(
      origin.connections.some(({ requests }) => requests.length > 1),
      "a connection of its own is used again",
    );
  });

  test("without a network is disabled, and without the top-level allowlist", async () => {
    const lines = [credentials("shut", "literal-token")];
    for (const host of [HOST, "top.example.com"]) {
      const wire = await dial(internet, { from: "127.0.0.7" });
      const answer = await wire.send(head(`CONNECT ${host}:443 HTTP/1.1`, `Host: ${host}`, ...lines));
      assertRefused(answer, { status: 403, reason: "network-disabled" });
    }
    const top = head(
      "CONNECT top.example.com:443 HTTP/1.1",
      "Host: top.example.com",
      credentials("one", TOKENS.ONE),
    );
    assertRefused(await askPlain(internet, top), { status: 403, reason: "no-rule-matched" });
  });

  test("is under the top-level denylist whatever it allows itself", async () => {
    const bytes = head(
      "CONNECT never.example.com:443 HTTP/1.1",
      "Host: a",
      credentials("open", "open-token"),
    );
    const answer = await askPlain(internet, bytes.replace("Host: a", "Host: never.example.com"));
    assertRefused(answer, { status: 403, reason: "rule-denies" });
  });

  test("is counted by its id", async () => {
    const before = (await gate.metrics()).sum("sallyport_sandbox_exchanges_total", {
      sandbox: "two",
      verdict: "allow",
    });
    await secretSeen([credentials("two", TOKENS.TWO)]);
    const metrics = await gate.metrics();
    assert.equal(
      metrics.sum("sallyport_sandbox_exchanges_total", { sandbox: "two", verdict: "allow" }),
      before + 1,
    );
  });
});
