import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import type { Asking } from "../src/accept/arrival.ts";
import { createDeadlines } from "../src/base/deadlines.ts";
import { DEFAULT_LIMITS } from "../src/model/limits.ts";
import type { ExchangeRecord } from "../src/model/record.ts";
import { runSocks } from "../src/socks.ts";
import type { World } from "../src/world.ts";

test("runSocks: a request goes the way of a CONNECT, told apart as socks", async () => {
  const { client, asked, stop } = await open();
  client.write(Buffer.from("0501000501000301610050", "hex"));
  const { door, claims } = await asked;
  assert.equal(door.listener, "socks");
  assert.equal(claims.authority?.port, 80);
  stop();
});

test("runSocks: what comes to no request leaves one record", async () => {
  const { client, recorded, stop } = await open();
  client.write(Buffer.from("0401", "hex"));
  client.end();
  const record = await recorded;
  assert.deepEqual([record.listener, record.failure, record.verdict], ["socks", "E_BAD_REQUEST", "deny"]);
  stop();
});

test("runSocks: the connection is counted as one of socks, until it closes", async () => {
  const { client, counted, asked, stop } = await open();
  assert.deepEqual(Object.fromEntries(counted), { explicit: 0, socks: 1 });
  client.write(Buffer.from("0501000501000301610050", "hex"));
  const { transport } = await asked;
  const closed = once(transport, "close");
  stop();
  await closed;
  // The listener's own count goes down after this.
  assert.deepEqual(Object.fromEntries(counted), { explicit: 1, socks: 0 });
});

async function open(): Promise<{
  readonly client: Socket;
  readonly asked: Promise<Asking>;
  /** What is counted as open, by listener; `explicit` was counted in before. */
  readonly counted: Map<string, number>;
  readonly recorded: Promise<ExchangeRecord>;
  stop(): void;
}> {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as { port: number }).port, "127.0.0.1");
  client.on("error", () => {});
  const [socket] = (await once(server, "connection")) as [Socket];
  const asked = Promise.withResolvers<Asking>();
  const recorded = Promise.withResolvers<ExchangeRecord>();
  const counted = new Map([["explicit", 1]]);
  const count = (listener: string, by: number) => counted.set(listener, (counted.get(listener) ?? 0) + by);
  const world = {
    limits: DEFAULT_LIMITS,
    deadlines: createDeadlines(0),
    recorder: {
      exchange: recorded.resolve,
      connectionOpened: (listener: string) => count(listener, 1),
      connectionClosed: (listener: string) => count(listener, -1),
    },
    inForce: () => ({ sandboxes: [], secrets: undefined, digest: "" }),
  } as unknown as World;
  const door = {
    listener: "explicit",
    address: "10.0.0.1",
    tunnel: undefined,
    scheme: "http",
    serverName: undefined,
  } as const;
  const cap = {
    claim: () => true,
    stream: () => () => {},
    room: () => ({ take: () => true, release: () => {} }),
    release: () => {},
  };
  const connectRequest = async (arrival: Asking) => asked.resolve(arrival);
  runSocks({ socket, early: Buffer.alloc(0) }, socket, { door, cap, world, connect: connectRequest });
  const stop = (): void => {
    client.destroy();
    socket.destroy();
    server.close();
  };
  return { client, counted, asked: asked.promise, recorded: recorded.promise, stop };
}
