/** `mode: evaluate_only` lets through what a rule would refuse, and says so; what is unsafe stays refused. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askConnect, askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromEnv, SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dialThrough } from "../support/wire-client.ts";

const HOST = "api.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let plain: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "absent.example.com", "unlisted.example.org", "denied.example.com"]) {
    internet.dns.set(name, { A: [PUBLIC_V4] });
  }
  internet.dns.set("private.example.org", { A: ["10.0.0.1"] });
  origin = await createOrigin(internet, {
    tls: [HOST, "absent.example.com", "unlisted.example.org", "denied.example.com"],
    bound: true,
  });
  plain = await createOrigin(internet);
  gate = await startGate(internet, {
    mode: "evaluate_only",
    network: {
      allowlist: [
        { domain: HOST, methods: ["GET"], transform: { Authorization: SECRET } },
        { domain: "absent.example.com", transform: { Authorization: fromEnv("ABSENT") } },
      ],
      denylist: [{ domain: "denied.example.com" }],
    },
  });
});
after(() => internet.close());

describe("evaluate_only", () => {
  test("says at the start, on /readyz and in a metric that nothing is enforced", async () => {
    assert.match(gate.log, /evaluat\w+.only/i);
    const ready = JSON.parse((await gate.admin("/readyz")).body) as Record<string, unknown>;
    assert.deepEqual([ready["mode"], ready["enforcing"]], ["evaluate_only", false]);
    assert.equal((await gate.metrics()).sum("sallyport_evaluate_only"), 1);
  });

  test("forwards what no rule allows, and records what would have been", async () => {
    const bytes = head("GET http://unlisted.example.org/ HTTP/1.1", "Host: unlisted.example.org");
    assert.equal((await askPlain(internet, bytes)).body, "ok");
    assert.equal(plain.requests.length, 1);
    const record = await gate.record({ host: "unlisted.example.org" });
    const { verdict, reason, would, rule } = record as Record<string, unknown>;
    assert.deepEqual(
      { verdict, reason, would, rule },
      { verdict: "allow", reason: "no-rule-matched", would: "deny", rule: null },
    );
  });

  test("forwards a denied host over TLS too", async () => {
    const wire = await dialThrough(internet, "denied.example.com:443", {
      ca: [gate.ca, internet.authority.certPem],
    });
    assert.equal((await wire.send(head("GET / HTTP/1.1", "Host: denied.example.com"))).body, "ok");
    wire.end();
    const record = await gate.record({ host: "denied.example.com" });
    assert.deepEqual(
      [record["verdict"], record["reason"], record["would"]],
      ["allow", "rule-denies", "deny"],
    );
  });

  test("injects where a rule allows, and nothing where it would not", async () => {
    await askInside(internet, gate, HOST);
    assert.equal(oneValue(origin.requests.at(-1) ?? { fields: [] }, "authorization"), internet.canary.secret);
    const bytes = head("POST / HTTP/1.1", `Host: ${HOST}`, "Content-Length: 0", "Authorization: mine");
    assert.equal(statusOf(await askInside(internet, gate, HOST, bytes)), 200);
    assert.equal(oneValue(origin.requests.at(-1) ?? { fields: [] }, "authorization"), "mine");
    const record = await gate.record({ host: HOST, method: "POST" });
    assert.deepEqual([record["would"], record["injected"]], ["deny", []]);
  });

  test("keeps refusing addresses, disagreeing names, plaintext secrets and missing ones", async () => {
    const refused = (status: number, reason: string) => ({ status, reason });
    assertRefused(await askConnect(internet, "private.example.org:443"), refused(403, "address-not-public"));
    assertRefused(await askConnect(internet, "127.0.0.1:443"), refused(403, "loopback"));
    assertRefused(await askInside(internet, gate, "absent.example.com"), refused(403, "secret-unavailable"));
    const plaintext = head(`GET http://${HOST}/ HTTP/1.1`, `Host: ${HOST}`);
    assertRefused(await askPlain(internet, plaintext), refused(403, "plaintext-secret"));
    const wire = await inside(internet, gate, HOST);
    assertRefused(
      await wire.send(head("GET / HTTP/1.1", "Host: other.example.com")),
      refused(421, "names-disagree"),
    );
    assert.equal(statusOf(await askPlain(internet, head("GET / HTTP/1.1", "Host: a", "Host: b"))), 400);
  });

  test("is left by a reload", async () => {
    await gate.reload({ network: { allowlist: [] } });
    const bytes = head("GET http://unlisted.example.org/ HTTP/1.1", "Host: unlisted.example.org");
    assertRefused(await askPlain(internet, bytes), { status: 403, reason: "no-rule-matched" });
    assert.equal((await gate.metrics()).sum("sallyport_evaluate_only"), 0);
  });
});

describe("a disabled network", () => {
  for (const [what, config] of Object.entries({
    absent: {},
    null: { network: null },
    disabled: { network: "disabled" },
  })) {
    test(`(${what}) stays refused in evaluate_only`, async () => {
      await gate.reload({ mode: "evaluate_only", ...config });
      assertRefused(await askConnect(internet, `${HOST}:443`), { status: 403, reason: "network-disabled" });
    });
  }
});
