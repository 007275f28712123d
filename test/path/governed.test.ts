/** Listed hosts pass, with the secret where it belongs and nowhere else; everything else is refused in words. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askConnect, askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const CONFIG = {
  network: {
    allowlist: [
      {
        domain: "hook.example.com",
        transform: { Authorization: `Bearer ${SECRET}`, "X-Api-Key": SECRET },
      },
      { domain: "other.example.com" },
      { id: "packages", domain: "*.packages.example.net", intercept: "always" },
      { domain: "blocked.example.com" },
    ],
    denylist: [{ id: "tracker", domain: "blocked.example.com" }],
  },
};
const ALIASES = ["AUTHORIZATION: a", "authorization: b", "X-API-KEY: c", "X_Api_Key: d"];

let internet: Internet;
let gate: Gate;
let secure: Origin;
let plain: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  for (const name of [
    "hook.example.com",
    "other.example.com",
    "deep.a.packages.example.net",
    "x.example.net",
  ]) {
    internet.dns.set(name, { A: [PUBLIC_V4] });
  }
  const names = ["hook.example.com", "other.example.com", "*.example.net", "*.a.packages.example.net"];
  secure = await createOrigin(internet, { tls: names, bound: true, answer });
  plain = await createOrigin(internet);
  packets = await watchPackets(internet);
  gate = await startGate(internet, CONFIG);
});
after(() => internet.close());

function answer(request: Message): string {
  if (!request.start.includes("/moved")) return respond("ok");
  return respond("", "302 Found", ["Location: https://evil.example.org/"]);
}

describe("a listed host", () => {
  for (const [what, lines] of Object.entries({
    "no value of its own": [],
    "one value of its own": ["Authorization: Bearer stolen"],
    "several, in any case, with an alias": ALIASES,
    "a Connection field that names it": ["Connection: authorization, x-api-key", "Authorization: a"],
  })) {
    test(`gets the secret exactly once where the client sends ${what}`, async () => {
      const start = ["POST /api/v1/agent-events HTTP/1.1", "Host: hook.example.com", "Content-Length: 2"];
      const answer = await askInside(internet, gate, "hook.example.com", `${head(...start, ...lines)}{}`);
      assert.equal(answer.body, "ok");
      const request = secure.requests.at(-1);
      assert.ok(request);
      assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
      assert.deepEqual(valuesOf(request, "x-api-key"), [internet.canary.secret]);
      assert.deepEqual(valuesOf(request, "x_api_key"), []);
      assert.equal(request.body, "{}");
      const record = await gate.record({ host: "hook.example.com" });
      assert.deepEqual(record["injected"], ["Authorization", "X-Api-Key"]);
    });
  }
});

describe("a listed host, further", () => {
  test("is asked over plain HTTP in origin-form, and nothing is added", async () => {
    const bytes = head("GET http://other.example.com/a?b=1 HTTP/1.1", "Host: other.example.com", "X-One: 1");
    assert.equal((await askPlain(internet, bytes)).body, "ok");
    const request = plain.requests.at(-1);
    assert.equal(request?.start, "GET /a?b=1 HTTP/1.1");
    assert.deepEqual(request?.fields, [
      ["Host", "other.example.com"],
      ["X-One", "1"],
    ]);
  });

  test("of a wildcard gets no secret, at any depth, and keeps the client's own", async () => {
    const host = "deep.a.packages.example.net";
    await askInside(internet, gate, host, head("GET / HTTP/1.1", `Host: ${host}`, "Authorization: mine"));
    const request = secure.requests.at(-1);
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), ["mine"]);
    assert.doesNotMatch(request.head, /canary/);
    const record = await gate.record({ host, visibility: "request" });
    assert.deepEqual([record["rule"], record["verdict"], record["injected"]], ["packages", "allow", []]);
  });

  test("gets the secret with each request of a connection, the other host with none", async () => {
    const before = secure.requests.length;
    const wire = await inside(internet, gate, "hook.example.com");
    for (const path of ["/1", "/2", "/3"])
      await wire.send(head(`GET ${path} HTTP/1.1`, "Host: hook.example.com"));
    const seen = secure.requests.slice(before);
    assert.deepEqual(
      seen.map(({ start }) => start),
      ["GET /1 HTTP/1.1", "GET /2 HTTP/1.1", "GET /3 HTTP/1.1"],
    );
    for (const request of seen) assert.equal(valuesOf(request, "authorization").length, 1);
  });

  test("is followed nowhere: a redirect goes to the client, and the next host gets no secret", async () => {
    const answer = await askInside(
      internet,
      gate,
      "hook.example.com",
      head("GET /moved HTTP/1.1", "Host: hook.example.com"),
    );
    assert.deepEqual([statusOf(answer), oneValue(answer, "location")], [302, "https://evil.example.org/"]);
    assertRefused(await askConnect(internet, "evil.example.org:443"), {
      status: 403,
      reason: "no-rule-matched",
    });
  });
});

const REFUSED = [
  ["unlisted.example.com", "no-rule-matched", null],
  ["sub.other.example.com", "no-rule-matched", null],
  ["other.example.com.evil.org", "no-rule-matched", null],
  ["notpackages.example.net", "no-rule-matched", null],
  ["packages.example.net", "no-rule-matched", null],
  ["blocked.example.com", "rule-denies", "tracker"],
  ["11.0.0.10", "no-rule-matched", null],
  ["[2a0f:ffff::10]", "no-rule-matched", null],
  ["localhost", "loopback", null],
  ["127.0.0.1", "loopback", null],
] as const;

describe("a refused host", () => {
  for (const [host, reason, rule] of REFUSED) {
    test(`${host} is ${reason} over CONNECT and over plain HTTP, and no packet leaves`, async () => {
      await packets.take();
      const queries = internet.dns.queries.length;
      const tunnel = await askConnect(internet, `${host}:443`);
      assertRefused(tunnel, { status: 403, reason, rule });
      assert.equal(tunnel.start, `HTTP/1.1 403 Blocked (${reason})`);
      const plainly = await askPlain(internet, head(`GET http://${host}/ HTTP/1.1`, `Host: ${host}`));
      assertRefused(plainly, { status: 403, reason, rule });
      assert.deepEqual(await packets.take(), []);
      assert.equal(internet.dns.queries.length, queries);
    });
  }

  test("a listed host's other port is refused", async () => {
    assertRefused(await askConnect(internet, "other.example.com:8443"), {
      status: 403,
      reason: "no-rule-matched",
      host: "other.example.com",
    });
  });

  test("each refusal is one record and one count", async () => {
    const before = await gate.metrics();
    await askConnect(internet, "counted.example.com:443");
    const record = await gate.record({ host: "counted.example.com" });
    assert.deepEqual(
      [record["verdict"], record["reason"], record["status"], record["rule"]],
      ["deny", "no-rule-matched", 403, null],
    );
    const labels = { verdict: "deny", reason: "no-rule-matched" };
    const [was, is] = [before, await gate.metrics()].map((one) =>
      one.sum("sallyport_exchanges_total", labels),
    );
    assert.equal(is, (was ?? 0) + 1);
  });
});
