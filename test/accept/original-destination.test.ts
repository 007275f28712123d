/** What the kernel says of an accepted socket: here of one that nobody redirected. Redirected ones are in test/path. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { before, test } from "node:test";
import { openRedirections, type Redirections } from "../../src/accept/original-destination.ts";

let redirections: Redirections;
before(async () => {
  redirections = await openRedirections();
});

/** Both ends of a connection over loopback. */
async function connected(host: string, to = host): Promise<readonly [accepted: Socket, client: Socket]> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, to);
  const [accepted] = (await once(server, "connection")) as [Socket];
  server.close();
  return [accepted, client];
}

for (const [host, to] of [
  ["127.0.0.1", "127.0.0.1"],
  ["::1", "::1"],
  ["::", "127.0.0.1"],
] as const) {
  test(`openRedirections: ${to} on ${host} was not redirected, and came by loopback`, async () => {
    const [accepted, client] = await connected(host, to);
    assert.equal(redirections.originalOf(accepted), undefined);
    assert.equal(redirections.interfaceOf(accepted), "lo");
    client.destroy();
    accepted.destroy();
  });
}

test("openRedirections: nothing is known of a socket that is gone", async () => {
  const [accepted, client] = await connected("127.0.0.1");
  accepted.destroy();
  client.destroy();
  await once(accepted, "close");
  assert.equal(redirections.originalOf(accepted), undefined);
  assert.equal(redirections.interfaceOf(accepted), undefined);
});
