/** The door of one sandbox: names that its DNS gave out are what its connections mean. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import * as packet from "dns-packet";
import { openJailDoor } from "../src/jail-door.ts";
import { createWorld } from "./support/world.ts";

test("openJailDoor: answers lookups, and takes connections by the address that they came to", async (context) => {
  const made = createWorld(context, { network: { allowlist: [] } });
  const door = openJailDoor("box", made.world, () => 0);
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  await once(udp, "listening");
  door.answer(udp);
  const client = createSocket("udp4");
  client.send(
    packet.encode({ type: "query", id: 1, questions: [{ type: "A", name: "a.test" }] }),
    udp.address().port,
    "127.0.0.1",
  );
  const [answer] = (await once(client, "message")) as [Buffer];
  assert.equal(packet.decode(answer).answers?.length, 1);
  client.close();
  udp.close();

  const handle = createServer().listen(0, "127.0.0.1");
  await once(handle, "listening");
  const server = door.accept(handle);
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write("\0\0");
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  server.close();
  const record = made.records.at(-1);
  assert.deepEqual([record?.sandbox, record?.listener, record?.reason], ["box", "jail", "loopback"]);
  assert.deepEqual([made.records[0]?.sandbox, made.records[0]?.listener], ["box", "dns"]);
});
