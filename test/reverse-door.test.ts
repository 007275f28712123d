import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { Failure } from "../src/model/failure.ts";
import { createReverseDoor } from "../src/reverse-door.ts";
import { breakOff, eventually, listenTo, type Peer } from "./support/loopback.ts";
import { createWorld, type TestWorld } from "./support/world.ts";

const KEY = "network.allowlist.a.example.transform.Authorization";
const SETTINGS = { network: { allowlist: [{ domain: "a.example", transform: { Authorization: "x" } }] } };

interface Scene {
  readonly world: TestWorld;
  readonly own: string;
  dial(): Peer;
}

async function openDoor(context: TestContext, limits = {}): Promise<Scene> {
  const world = createWorld(context, SETTINGS, { limits, secrets: { [KEY]: "Bearer real" } });
  const port = await freePort();
  const door = createReverseDoor({ host: "127.0.0.1", port }, world.world);
  await door.listen();
  context.after(() => {
    door.close();
    world.world.connections.each(({ holder }) => holder.cut());
  });
  return {
    world,
    own: `Host: 127.0.0.1:${port}`,
    dial: () => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      context.after(() => socket.destroy());
      return listenTo(socket);
    },
  };
}

/** Free a moment ago; the door's own Host is known before it stands. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

test("createReverseDoor: a request goes to the host of its first segment, as one exchange of this door", async (context) => {
  const { world, own, dial } = await openDoor(context);
  const client = dial();
  client.send(`GET /a.example/v1?x HTTP/1.1\r\n${own}\r\nAuthorization: mine\r\n\r\n`);
  const origin = await world.origin(0);
  assert.equal(
    await origin.until("\r\n\r\n"),
    "GET /v1?x HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer real\r\n\r\n",
  );
  origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  await client.until("ok");
  const { listener, verdict, host, path, status } = await world.record(0);
  assert.deepEqual([listener, verdict, host, path, status], ["reverse", "allow", "a.example", "/v1", 200]);
});

test("createReverseDoor: what is refused before it is an exchange has one record too", async (context) => {
  const { world, own, dial } = await openDoor(context);
  for (const [index, [request, status, reason, failure]] of [
    [`GET /b.example/ HTTP/1.1\r\n${own}\r\n\r\n`, 403, "no-rule-matched", undefined],
    [`GET /a.example/ HTTP/1.1\r\n${own}\r\nOrigin: null\r\n\r\n`, 403, "cross-site", undefined],
    ["GET /a.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "cross-site", undefined],
    [`GET / HTTP/1.1\r\n${own}\r\n\r\n`, 400, undefined, "E_BAD_REQUEST"],
    [`GET http://a.example/ HTTP/1.1\r\n${own}\r\n\r\n`, 400, undefined, "E_BAD_REQUEST"],
    [`GET /a.example/ HTTP/1.1\r\n${own}\r\n${own}\r\n\r\n`, 400, undefined, "E_BAD_REQUEST"],
  ].entries()) {
    const client = dial();
    client.send(String(request));
    assert.match(await client.until("\r\n\r\n{"), new RegExp(`^HTTP/1.1 ${status} `));
    const record = await world.record(index);
    assert.deepEqual(
      [record.listener, record.reason, record.failure, record.status],
      ["reverse", reason, failure, status],
    );
  }
  assert.equal(world.origins.length, 0);
});

test("createReverseDoor: clients count as connections, and leave the count again", async (context) => {
  const { world, own, dial } = await openDoor(context, { connections: 1 });
  const client = dial();
  client.send(`GET /a.example/ HTTP/1.1\r\n${own}\r\n\r\n`);
  await world.origin(0);
  assert.equal(await dial().ended, "reset");
  breakOff(client.socket as Socket);
  await eventually(() => world.world.connections.size === 0);
  const next = dial();
  next.send(`GET /b.example/ HTTP/1.1\r\n${own}\r\n\r\n`);
  await next.until("no-rule-matched");
});

test("createReverseDoor: an address that another one has is a fault of the config", async (context) => {
  const { world, own } = await openDoor(context);
  const port = Number(own.split(":").at(-1));
  const door = createReverseDoor({ host: "127.0.0.1", port }, world.world);
  await assert.rejects(door.listen(), (error: Failure) => error.code === "E_CONFIG");
});
