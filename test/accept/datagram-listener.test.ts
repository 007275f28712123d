/** Datagrams at one address, of both families where it is every address. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { listenForDatagrams } from "../../src/accept/datagram-listener.ts";

for (const [host, to] of [
  ["127.0.0.1", "127.0.0.1"],
  ["::1", "::1"],
  ["::", "127.0.0.1"],
] as const) {
  test(`listenForDatagrams: ${host} hears ${to}`, async () => {
    const socket = await listenForDatagrams({ host, port: 0 }, "listen.gateway.dns");
    const client = createSocket(to.includes(":") ? "udp6" : "udp4");
    const heard = once(socket, "message");
    client.send("hello", socket.address().port, to);
    assert.equal(String((await heard)[0]), "hello");
    client.close();
    socket.close();
  });
}

test("listenForDatagrams: a port that is taken is said", async () => {
  const first = await listenForDatagrams({ host: "127.0.0.1", port: 0 }, "listen.gateway.dns");
  const { port } = first.address();
  await assert.rejects(listenForDatagrams({ host: "127.0.0.1", port }, "listen.gateway.dns"), {
    code: "E_CONFIG",
    message: `Cannot listen on UDP port ${port} (listen.gateway.dns): something else listens there`,
  });
  first.close();
});
