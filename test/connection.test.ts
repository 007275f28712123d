import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { type TestContext, test } from "node:test";
import { connect } from "node:tls";
import { runConnection } from "../src/connection.ts";
import type { Settings } from "./decide/build.ts";
import { createPair, eventually, listenTo, type Peer } from "./support/loopback.ts";
import { createWorld, ROOT_PEM, type TestWorld, type WorldOptions } from "./support/world.ts";
import { hello, sni } from "./wire/hello-support.ts";

const KEY = "network.allowlist.a.example.transform.Authorization";
const INSPECTED: Settings = {
  network: {
    allowlist: [{ domain: "a.example", transform: { Authorization: "x" } }, { domain: "t.example" }],
  },
};
const CONNECT = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

test("runConnection looks into TLS where the rule needs it, and each request inside is an exchange", async (context) => {
  const { client, world } = await run(context, INSPECTED);
  client.send(CONNECT);
  await client.until(ESTABLISHED);
  const inside = secure(client);
  for (const round of [0, 1]) {
    inside.send("GET /x HTTP/1.1\r\nHost: a.example\r\nAuthorization: mine\r\n\r\n");
    const origin = await world.origin(0);
    await eventually(() => origin.text.split("GET /x ").length === round + 2);
    origin.send(OK);
    const record = await world.record(round);
    assert.equal(record.verdict, "allow");
    assert.deepEqual(record.injected, ["Authorization"]);
    assert.equal(record.status, 200);
  }
  await eventually(() => inside.text.split("ok").length > 2);
  assert.equal((await world.origin(0)).text.match(/Authorization: Bearer real/g)?.length, 2);
  assert.doesNotMatch((await world.origin(0)).text, /mine/);
  assert.equal(world.records.length, 2, "the CONNECT is not an exchange of its own");
});

test("runConnection looks into a hello that came in one piece with the CONNECT", async (context) => {
  const { client, world } = await run(context, INSPECTED);
  const [inner, outer] = duplexPair();
  const inside = listenTo(connect({ socket: inner, servername: "a.example", ca: ROOT_PEM }));
  const [early] = (await once(outer, "data")) as [Buffer];
  client.socket.removeAllListeners("data");
  client.socket.once("data", (bytes: Buffer) => {
    assert.equal(bytes.toString("latin1", 0, ESTABLISHED.length), ESTABLISHED);
    outer.write(bytes.subarray(ESTABLISHED.length));
    client.socket.pipe(outer).pipe(client.socket);
  });
  client.send(Buffer.concat([Buffer.from(CONNECT, "latin1"), early]));
  inside.send("GET /early HTTP/1.1\r\nHost: a.example\r\n\r\n");
  await (await world.origin(0)).until("GET /early HTTP/1.1\r\n");
});

test("runConnection refuses a CONNECT in words, and the name inside that is not the one of the CONNECT", async (context) => {
  const refused = await run(context, INSPECTED);
  refused.client.send(CONNECT.replaceAll("a.example", "b.example"));
  assert.equal(await refused.client.ended, "end");
  assert.match(refused.client.text, /^HTTP\/1\.1 403 Blocked \(no-rule-matched\)\r\n/);
  const [record] = refused.world.records;
  assert.deepEqual([record?.method, record?.verdict, record?.status], ["CONNECT", "deny", 403]);

  const { client, world } = await run(context, INSPECTED);
  client.send(CONNECT);
  await client.until(ESTABLISHED);
  const inside = secure(client);
  inside.send("GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
  await inside.until("names-disagree");
  assert.match(inside.text, /^HTTP\/1\.1 421 /);
  assert.equal((await world.record(0)).reason, "names-disagree");
  assert.equal(world.origins.length, 0);
});

test("runConnection reads plain HTTP in a CONNECT, refuses what is neither, and a tunnel in a tunnel", async (context) => {
  const plain = await run(context, {
    network: { allowlist: [{ domain: "a.example", intercept: "always" }] },
  });
  plain.client.send(CONNECT.replaceAll("443", "80"));
  await plain.client.until(ESTABLISHED);
  plain.client.send(CONNECT.replaceAll("443", "80"));
  await plain.client.until("method-refused");
  assert.equal((await plain.world.record(0)).reason, "method-refused");

  const other = await run(context, INSPECTED);
  other.client.send(CONNECT);
  await other.client.until(ESTABLISHED);
  other.client.send("\0\0\0\0");
  await other.client.ended;
  assert.equal((await other.world.record(0)).reason, "needs-inspection");
  // An alert: nobody reads HTTP there any more.
  assert.ok(other.client.text.slice(ESTABLISHED.length).startsWith("\x15\x03"));
});

test("runConnection closes on a client that sends no hello after its CONNECT, or a bad one", async (context) => {
  for (const bad of [true, false]) {
    const { client, world } = await run(context, INSPECTED);
    client.send(CONNECT);
    await client.until(ESTABLISHED);
    if (bad) client.send(Buffer.from([22, 3, 1, 0, 0]));
    else world.deadlines.pass(world.limits.handshake_timeout);
    await client.ended;
    const record = await world.record(0);
    assert.equal(record.failure, bad ? "E_BAD_HELLO" : "E_TIMEOUT");
  }
});

test("runConnection refuses a leaf beyond the sandbox's budget", async (context) => {
  const { client, world } = await run(context, {
    network: { allowlist: [{ domain: "spent.example", intercept: "always" }] },
  });
  client.send(CONNECT.replaceAll("a.example", "spent.example"));
  await client.until(ESTABLISHED);
  client.send(hello({ extensions: [sni("spent.example")] }));
  await client.ended;
  assert.equal((await world.record(0)).reason, "limit-exceeded");
});

test("runConnection cuts an inspected connection whose name is refused by a new policy", async (context) => {
  const { client, world } = await run(context, INSPECTED);
  client.send(CONNECT);
  await client.until(ESTABLISHED);
  const inside = secure(client);
  inside.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  (await world.origin(0)).send(OK);
  await inside.until("ok");
  world.reload({ network: { allowlist: [{ domain: "b.example" }] } });
  await inside.ended;
  await eventually(() => world.world.connections.size === 0);
  assert.equal(world.world.live.size, 0);
});

test("runConnection records what is malformed, once", async (context) => {
  const { client, world } = await run(context, INSPECTED);
  client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  await client.ended;
  assert.match(client.text, /^HTTP\/1\.1 400 /);
  assert.equal(world.records.length, 1);
  assert.deepEqual([world.records[0]?.failure, world.records[0]?.status], ["E_BAD_REQUEST", 400]);
});

test("runConnection resets the connection that is one too many, and counts those that end", async (context) => {
  const world = createWorld(context, INSPECTED, { limits: { connections: 1 } });
  const first = await open(context, world);
  const second = await open(context, world);
  assert.equal(await second.ended, "reset");
  first.socket.end();
  await first.ended;
  await eventually(() => world.world.connections.size === 0);
  const third = await open(context, world);
  third.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  await third.until("plaintext-secret");
});

async function run(context: TestContext, settings: Settings, options: WorldOptions = {}) {
  const world = createWorld(context, settings, { secrets: { [KEY]: "Bearer real" }, ...options });
  const client = await open(context, world);
  return { world, client };
}

/** A client's connection that runs. */
async function open(context: TestContext, { world }: TestWorld): Promise<Peer> {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined);
  const client = listenTo(far);
  runConnection(near, "explicit", world);
  return client;
}

/** TLS over a connection that was read in clear until now. */
function secure({ socket }: Peer): Peer {
  socket.removeAllListeners("data");
  return listenTo(connect({ socket, servername: "a.example", ca: ROOT_PEM, ALPNProtocols: ["http/1.1"] }));
}
