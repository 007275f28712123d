/** A changed config comes into force at once, for what is already open too; a broken one changes nothing. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, beforeEach, describe, test } from "node:test";
import { askConnect, askInside, head, inside } from "../support/ask.ts";
import type { Gate, GateConfig } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const SEEN = "seen.example.com";
const TUNNEL = "tunnel.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;

function allow(...domains: readonly string[]): GateConfig {
  const rules = domains.map((domain) =>
    domain === SEEN ? { domain, transform: { Authorization: SECRET } } : { domain },
  );
  return { network: { allowlist: rules } };
}

before(async () => {
  internet = await createInternet();
  for (const name of [SEEN, TUNNEL, "new.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, {
    tls: [SEEN, TUNNEL, "new.example.com"],
    bound: true,
    answer: ({ start }) =>
      start.includes("/stream") ? head("HTTP/1.1 200 OK", "Content-Length: 100") : respond("ok"),
  });
  gate = await startGate(internet, allow(SEEN, TUNNEL));
});
beforeEach(() => gate.reload({ ...allow(SEEN, TUNNEL), mode: "enforce" }));
after(() => internet.close());

describe("a reload", () => {
  test("allows what is new and refuses what is gone", async () => {
    assertRefused(await askConnect(internet, "new.example.com:443"), {
      status: 403,
      reason: "no-rule-matched",
    });
    const before = (await gate.metrics()).sum("sallyport_config_reloads_total", { result: "success" });
    await gate.reload(allow("new.example.com"));
    assert.equal(statusOf(await askConnect(internet, "new.example.com:443")), 200);
    assertRefused(await askConnect(internet, `${TUNNEL}:443`), { status: 403, reason: "no-rule-matched" });
    const metrics = await gate.metrics();
    assert.equal(metrics.sum("sallyport_config_reloads_total", { result: "success" }), before + 1);
    const { time } = JSON.parse((await gate.admin("/readyz")).body) as { time?: string };
    assert.equal(time, undefined);
  });

  test("is done on SIGHUP too", async () => {
    const before = (await gate.metrics()).sum("sallyport_config_reloads_total");
    gate.signal("SIGHUP");
    const deadline = Date.now() + 5_000;
    while ((await gate.metrics()).sum("sallyport_config_reloads_total") <= before)
      assert.ok(Date.now() < deadline);
  });

  test("tells records and /readyz of the policy in force", async () => {
    const policy = async () => String(JSON.parse((await gate.admin("/readyz")).body).policy);
    const first = await policy();
    await askConnect(internet, "one.example.org:443");
    assert.equal((await gate.record({ host: "one.example.org" }))["policy"], first);
    await gate.reload(allow(TUNNEL));
    assert.notEqual(await policy(), first);
    await askConnect(internet, "two.example.org:443");
    assert.equal((await gate.record({ host: "two.example.org" }))["policy"], await policy());
  });

  test("changes a secret's place without mixing old and new on one upstream connection", async () => {
    await askInside(internet, gate, SEEN);
    await gate.reload({ network: { allowlist: [{ domain: SEEN, transform: { "X-Other": SECRET } }] } });
    await askInside(internet, gate, SEEN);
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.deepEqual(
      [oneValue(request, "authorization"), oneValue(request, "x-other")],
      [undefined, internet.canary.secret],
    );
    assert.equal(origin.connections.at(-1)?.requests.length, 1);
  });

  test("of what needs a restart says so", async () => {
    await gate.reload({ ...allow(TUNNEL), listen: { proxy: "127.0.0.1:8099", admin: "127.0.0.1:9464" } });
    await gate.untilLogged(/listen/);
    assert.equal(statusOf(await askConnect(internet, `${TUNNEL}:443`)), 200);
  });
});

describe("what is open when its host is revoked", () => {
  test("a tunnel is cut", async () => {
    const wire = await dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem });
    await wire.send(head("GET / HTTP/1.1", `Host: ${TUNNEL}`));
    await gate.reload(allow(SEEN));
    await wire.closed();
    assert.equal(
      (await gate.record({ host: TUNNEL, bytes_in: 0 }).catch(() => gate.records.at(-1)))?.["host"],
      TUNNEL,
    );
  });

  test("a tunnel whose host stays is not", async () => {
    const wire = await dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem });
    await gate.reload(allow(TUNNEL, "new.example.com"));
    assert.equal((await wire.send(head("GET / HTTP/1.1", `Host: ${TUNNEL}`))).body, "ok");
  });

  test("an inspected connection is cut, idle or in the middle of a response", async () => {
    const idle = await inside(internet, gate, SEEN);
    await idle.send(head("GET / HTTP/1.1", `Host: ${SEEN}`));
    const busy = await inside(internet, gate, SEEN);
    busy.write(head("GET /stream HTTP/1.1", `Host: ${SEEN}`));
    await busy.until("the head", (text) => text.includes("\r\n\r\n"));
    const upstream = origin.connections.at(-1);
    await gate.reload(allow(TUNNEL));
    await Promise.all([idle.closed(), busy.closed()]);
    await origin.until("the upstream's close", () => upstream?.closed === true);
    assert.equal((await gate.record({ host: SEEN, path: "/stream" }))["reason"], "no-rule-matched");
  });

  test("an inspected connection whose host stays goes on, by the new rules", async () => {
    const wire = await inside(internet, gate, SEEN);
    await wire.send(head("GET / HTTP/1.1", `Host: ${SEEN}`));
    await gate.reload({ network: { allowlist: [{ domain: SEEN, methods: ["GET"], intercept: "always" }] } });
    assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${SEEN}`))), 200);
    assert.equal(oneValue(origin.requests.at(-1) ?? { fields: [] }, "authorization"), undefined);
    assertRefused(await wire.send(head("POST / HTTP/1.1", `Host: ${SEEN}`)), {
      status: 403,
      reason: "no-rule-matched",
    });
  });
});

const BROKEN: Readonly<Record<string, string>> = {
  "that is no YAML": "network: [",
  "with an unknown key": "version: 1\nnetwerk: {}\n",
  "with a duplicate key": "version: 1\nversion: 1\n",
  "that is empty": "",
  "of another version": "version: 2\n",
  "with a bad range": "version: 1\nupstream: { allow_ranges: [10.0.0.0/99] }\n",
  "that opens loopback": "version: 1\nupstream: { allow_ranges: [127.0.0.0/8] }\n",
  "that injects under a public suffix":
    'version: 1\nnetwork: { allowlist: [ { domain: "*.co.uk", transform: { A: b } } ] }\n',
  "that is larger than a mebibyte": `version: 1\n# ${"x".repeat(1_100_000)}\n`,
  "full of aliases": `a: &a [x,x,x,x,x,x,x,x,x]\n${[..."bcdefgh"].map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefg"[index]}`).join()}]`).join("\n")}\n`,
};

describe("a broken file", () => {
  for (const [what, text] of Object.entries(BROKEN)) {
    test(`${what} leaves the last good policy in force, and says so`, async () => {
      const before = await gate.metrics();
      await gate.reload(text);
      assert.equal(statusOf(await askInside(internet, gate, SEEN)), 200);
      assertRefused(await askConnect(internet, "new.example.com:443"), {
        status: 403,
        reason: "no-rule-matched",
      });
      const metrics = await gate.metrics();
      const failures = (from: typeof metrics) =>
        from.sum("sallyport_config_reloads_total", { result: "failure" });
      assert.equal(failures(metrics), failures(before) + 1);
      const last = "sallyport_config_last_success_timestamp_seconds";
      assert.equal(metrics.sum(last), before.sum(last));
      const ready = await gate.admin("/readyz");
      assert.equal(statusOf(ready), 200);
      assert.equal(JSON.parse(ready.body).config.last_reload, "failure");
      await gate.untilLogged(/sallyport\.yaml(:\d+:\d+)?: /);
    });
  }

  test("that names a secret's value in a wrong place does not print it", async () => {
    await gate.reload(
      `version: 1\nnetwork: { allowlist: [ { domain: a.example.com, transform: "${internet.canary.secret}" } ] }\n`,
    );
    await gate.admin("/readyz");
    assert.doesNotThrow(() => internet.canary.assertUnseen());
  });

  test("that is written over the good one in place is noticed like one that is moved there", async () => {
    const before = (await gate.metrics()).sum("sallyport_config_reloads_total", { result: "failure" });
    writeFileSync(gate.configFile, "network: [");
    const deadline = Date.now() + 5_000;
    while ((await gate.metrics()).sum("sallyport_config_reloads_total", { result: "failure" }) <= before) {
      assert.ok(Date.now() < deadline, "not noticed");
    }
    assert.equal(
      statusOf(
        await dial(internet).then((wire) =>
          wire.send(head(`CONNECT ${TUNNEL}:443 HTTP/1.1`, `Host: ${TUNNEL}`), { connect: true }),
        ),
      ),
      200,
    );
  });
});
