/** The base-URL door through reloads, drains, limits and several workers. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, REVERSE_LISTEN } from "../support/base-url.ts";
import type { Gate, GateConfig } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const HOST = "api.example.com";

interface Scene {
  readonly internet: Internet;
  readonly gate: Gate;
  readonly origin: Origin;
  /** Requests of `/held` are answered by hand. */
  readonly held: Connection[];
}

const internets: Internet[] = [];
after(() => Promise.all(internets.map((internet) => internet.close())));

function configOf(more: GateConfig = {}): GateConfig {
  const allowlist = [{ domain: HOST, transform: { Authorization: SECRET } }];
  return { ...REVERSE_LISTEN, network: { allowlist }, ...more };
}

async function scene(more: GateConfig = {}): Promise<Scene> {
  const internet = await createInternet();
  internets.push(internet);
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const held: Connection[] = [];
  const origin = await createOrigin(internet, {
    tls: [HOST],
    bound: true,
    answer: ({ start }, connection) => {
      if (!start.includes("/held")) return respond("ok");
      held.push(connection);
      return undefined;
    },
  });
  const gate = await startGate(internet, configOf(more));
  return { internet, gate, origin, held };
}

describe("a reload", () => {
  let one: Scene;
  before(async () => {
    one = await scene();
  });

  test("decides the next request on an open connection, and cuts what is under way", async () => {
    const { internet, gate, origin, held } = one;
    const idle = await dialReverse(internet);
    assert.equal(statusOf(await idle.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST))), 200);
    const busy = await dialReverse(internet);
    busy.write(head(`GET /${HOST}/held HTTP/1.1`, OWN_HOST));
    await origin.until("the request", () => held.length === 1);
    held[0]?.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 100")}begin`);
    await busy.until("the beginning", (text) => text.endsWith("begin"));
    await gate.reload(configOf({ network: { allowlist: [] } }));
    assert.equal(await busy.closed(), "error");
    const answer = await idle.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST));
    assertRefused(answer, { status: 403, reason: "no-rule-matched" });
    await gate.reload(configOf());
    assert.equal(statusOf(await askReverse(internet, `GET /${HOST}/`)), 200);
  });

  test("of the door itself waits for a restart, and says so", async () => {
    const { internet, gate } = one;
    await gate.reload(configOf({ listen: { reverse: "127.0.0.1:8082", admin: "127.0.0.1:9464" } }));
    await gate.untilLogged(/needs a restart/);
    assert.equal(statusOf(await askReverse(internet, `GET /${HOST}/`)), 200);
    await gate.reload(configOf());
  });
});

for (const workers of [1, 2]) {
  describe(`SIGTERM with ${workers === 1 ? "one process" : "workers"}`, () => {
    test("finishes the exchange under way, closes idle connections, and exits with 0", async () => {
      const { internet, gate, origin, held } = await scene({ workers, limits: { drain_timeout: "10s" } });
      const busy = await dialReverse(internet);
      const idle = await dialReverse(internet);
      assert.equal(statusOf(await idle.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST))), 200);
      const silent = await dialReverse(internet);
      busy.write(head(`GET /${HOST}/held HTTP/1.1`, OWN_HOST));
      await origin.until("the request", () => held.length === 1);
      const started = performance.now();
      gate.signal("SIGTERM");
      await idle.closed();
      await silent.closed();
      held[0]?.socket.write(respond("whole"));
      const answer = await busy.response();
      assert.deepEqual([answer.body, oneValue(answer, "connection")?.toLowerCase()], ["whole", "close"]);
      await busy.closed();
      assert.equal(await gate.ended, 0);
      assert.ok(performance.now() - started < 5_000, "it waited for nobody");
      assert.equal(gate.records.at(-1)?.["path"], "/held");
    });

    test("cuts what takes too long, so that it does not look whole", async () => {
      const { internet, gate, origin, held } = await scene({ workers, limits: { drain_timeout: "300ms" } });
      const busy = await dialReverse(internet);
      busy.write(head(`GET /${HOST}/held HTTP/1.1`, OWN_HOST));
      await origin.until("the request", () => held.length === 1);
      held[0]?.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 500")}begin`);
      await busy.until("the beginning", (text) => text.endsWith("begin"));
      gate.signal("SIGTERM");
      const answer = await busy.response();
      assert.deepEqual([statusOf(answer), answer.complete], [200, false]);
      assert.equal(await gate.ended, 0);
    });
  });
}

describe("two workers", () => {
  test("both serve the door, and each numbers its own records", async () => {
    const { internet, gate } = await scene({ workers: 2 });
    for (let count = 0; count < 20; count += 1) {
      assert.equal(statusOf(await askReverse(internet, `GET /${HOST}/${count}`)), 200);
    }
    for (let count = 0; count < 20; count += 1) await gate.record({ path: `/${count}`, listener: "reverse" });
    assert.equal(new Set(gate.records.map(({ session }) => session)).size, 2);
    const metrics = await gate.metrics();
    assert.equal(metrics.sum("sallyport_exchanges_total", { listener: "reverse", verdict: "allow" }), 20);
  });
});

describe("limits", () => {
  let one: Scene;
  before(async () => {
    one = await scene({
      limits: {
        head_timeout: "1s",
        idle_timeout: "1s",
        progress_timeout: "1s",
        response_timeout: "1s",
        connections: 5,
      },
    });
  });

  test("a head that does not come in time is 408, and a connection without a byte is closed", async () => {
    const silent = await dialReverse(one.internet);
    const slow = await dialReverse(one.internet);
    slow.write("GET /api");
    assert.equal(statusOf(await slow.response()), 408);
    await slow.closed();
    await silent.closed();
    assert.equal(silent.received, "");
    await one.gate.record({ failure: "E_TIMEOUT", status: 408, listener: "reverse" });
  });

  test("an idle connection is closed, and a body that does not move is cut", async () => {
    const idle = await dialReverse(one.internet);
    assert.equal(statusOf(await idle.send(head(`GET /${HOST}/ HTTP/1.1`, OWN_HOST))), 200);
    const stuck = await dialReverse(one.internet);
    stuck.write(`${head(`POST /${HOST}/stuck HTTP/1.1`, OWN_HOST, "Content-Length: 10")}he`);
    await idle.closed();
    await stuck.closed();
    const upstream = one.origin.connections.find(({ received }) => received.includes("/stuck"));
    await one.origin.until("the release", () => upstream?.closed === true);
  });

  test("an upstream that does not answer is 504", async () => {
    const answer = await askReverse(one.internet, `GET /${HOST}/held`);
    assert.deepEqual([statusOf(answer), oneValue(answer, "x-sallyport-failure")], [504, "E_TIMEOUT"]);
  });

  test("connections beyond the limit are reset, and their places are given back", async () => {
    const open = [];
    for (let count = 0; count < 5; count += 1) open.push(await dialReverse(one.internet));
    const beyond = dialReverse(one.internet).then((wire) => wire.closed());
    assert.equal(await beyond.catch(() => "error"), "error");
    for (const wire of open) wire.destroy();
    const free = async () =>
      (await one.gate.metrics()).sum("sallyport_connections", { listener: "reverse" }) === 0;
    for (const end = Date.now() + 5_000; !(await free()); )
      assert.ok(Date.now() < end, "none was given back");
    assert.equal(statusOf(await askReverse(one.internet, `GET /${HOST}/`)), 200);
  });
});
