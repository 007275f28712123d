/** Two workers serve one port; what the admin listener says is of both. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askConnect, askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const HOST = "api.example.com";
const CONFIG = {
  workers: 2,
  network: {
    allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }, { domain: "plain.example.com" }],
  },
};

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: [HOST], bound: true });
  await createOrigin(internet);
  gate = await startGate(internet, CONFIG);
});
after(() => internet.close());

/** Workers write on their own; their records are there a moment after the answer. */
async function recordsOf(host: string, count: number): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const found = [];
  for (let index = 0; index < count; index += 1) found.push(await gate.record({ host }));
  return found;
}

describe("two workers", () => {
  test("both serve, each numbers its own records, and /metrics is their sum", async () => {
    const bytes = head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com");
    for (let count = 0; count < 20; count += 1) assert.equal((await askPlain(internet, bytes)).body, "ok");
    const records = await recordsOf("plain.example.com", 20);
    const bySession = Map.groupBy(records, ({ session }) => session);
    assert.equal(bySession.size, 2);
    for (const own of bySession.values()) {
      const numbers = own.map(({ seq }) => Number(seq));
      assert.deepEqual(
        numbers,
        numbers.map((_, index) => index + (numbers[0] ?? 0)),
      );
    }
    const metrics = await gate.metrics();
    assert.equal(metrics.sum("sallyport_exchanges_total", { verdict: "allow" }), 20);
    assert.equal(
      metrics.sum("sallyport_rule_exchanges_total", { rule: "plain.example.com", verdict: "allow" }),
      20,
    );
    assert.equal(metrics.samples.filter(({ name }) => name === "sallyport_build_info").length, 1);
  });

  test("share one CA", async () => {
    for (let count = 0; count < 6; count += 1)
      assert.equal(statusOf(await askInside(internet, gate, HOST)), 200);
  });

  test("take up a change together", async () => {
    const open = await Promise.all(Array.from({ length: 4 }, () => inside(internet, gate, HOST)));
    await gate.reload({ ...CONFIG, network: { allowlist: [{ domain: "plain.example.com" }] } });
    await Promise.all(open.map((wire) => wire.closed()));
    for (let count = 0; count < 8; count += 1) {
      assertRefused(await askConnect(internet, `${HOST}:443`), { status: 403, reason: "no-rule-matched" });
    }
    await gate.reload(CONFIG);
    for (let count = 0; count < 8; count += 1)
      assert.equal(statusOf(await askConnect(internet, `${HOST}:443`)), 200);
  });

  test("one that is killed is replaced, and the other serves on", async () => {
    const lookup = internet.gate.spawn(["ps", "-o", "pid=", "--ppid", String(gate.pid)], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const pids = String(
      await lookup.stdout?.setEncoding("utf8").reduce((all: string, piece: string) => all + piece, ""),
    )
      .trim()
      .split(/\s+/);
    assert.ok(pids.length >= 2, `workers: ${pids.join()}`);
    process.kill(Number(pids[0]), "SIGKILL");
    await gate.untilLogged(/worker died/i);
    const bytes = head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com");
    const end = Date.now() + 15_000;
    for (let inARow = 0; inARow < 8; ) {
      const answer = await askPlain(internet, bytes).catch(() => undefined);
      inARow = answer?.body === "ok" ? inARow + 1 : 0;
      assert.ok(Date.now() < end, "not served again");
      if (inARow === 0) await delay(50);
    }
  });
});
