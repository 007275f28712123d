/** SIGTERM: nothing new comes in, what is under way is finished, and what takes too long is cut. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";

const internets: Internet[] = [];
after(() => Promise.all(internets.map((internet) => internet.close())));

interface Scene {
  readonly internet: Internet;
  readonly gate: Gate;
  readonly origin: Origin;
  /** Answers each request by hand. */
  readonly waiting: Connection[];
}

async function scene(workers: number, drain: string): Promise<Scene> {
  const internet = await createInternet();
  internets.push(internet);
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const waiting: Connection[] = [];
  const answer = (_request: unknown, connection: Connection) => {
    waiting.push(connection);
    return undefined;
  };
  const origin = await createOrigin(internet, {
    tls: [HOST],
    bound: true,
    answer,
  });
  const gate = await startGate(internet, {
    workers,
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
    limits: { drain_timeout: drain },
  });
  return { internet, gate, origin, waiting };
}

for (const workers of [1, 2]) {
  describe(`SIGTERM with ${workers === 1 ? "one process" : "workers"}`, () => {
    test("finishes the exchange that is under way, closes idle connections, and exits with 0", async () => {
      const { internet, gate, origin, waiting } = await scene(workers, "10s");
      const busy = await inside(internet, gate, HOST);
      const idle = await dial(internet);
      busy.write(head("GET /slow HTTP/1.1", `Host: ${HOST}`));
      await origin.until("the request", () => waiting.length === 1);
      gate.signal("SIGTERM");
      await idle.closed();
      // Workers stop listening one after the other; none is left long before the exchange has to be over.
      while (await letsIn(internet));
      waiting[0]?.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 5")}whole`);
      const answer = await busy.response();
      assert.deepEqual([answer.body, oneValue(answer, "connection")?.toLowerCase()], ["whole", "close"]);
      await busy.closed();
      assert.equal(await gate.ended, 0);
      assert.equal(gate.records.at(-1)?.["path"], "/slow");
    });

    test("cuts what takes too long, so that it does not look whole, and exits all the same", async () => {
      const { internet, gate, origin, waiting } = await scene(workers, "300ms");
      const busy = await inside(internet, gate, HOST);
      busy.write(head("GET /endless HTTP/1.1", `Host: ${HOST}`));
      await origin.until("the request", () => waiting.length === 1);
      waiting[0]?.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 500")}begin`);
      await busy.until("the beginning", (text) => text.endsWith("begin"));
      gate.signal("SIGTERM");
      const answer = await busy.response();
      assert.deepEqual([statusOf(answer), answer.complete], [200, false]);
      assert.equal(await gate.ended, 0);
    });
  });
}

describe("a second signal", () => {
  test("ends the gate at once", async () => {
    const { internet, gate, origin, waiting } = await scene(1, "60s");
    const busy = await inside(internet, gate, HOST);
    busy.write(head("GET /slow HTTP/1.1", `Host: ${HOST}`));
    await origin.until("the request", () => waiting.length === 1);
    gate.signal("SIGTERM");
    await gate.untilLogged(/rain/);
    gate.signal("SIGINT");
    assert.notEqual(await gate.ended, 0);
  });
});

/** Whether a new connection is answered. */
function letsIn(internet: Internet): Promise<boolean> {
  return dial(internet)
    .then((wire) => wire.send(head("GET http://a/ HTTP/1.1", "Host: a")))
    .then(
      () => true,
      () => false,
    );
}
