import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { runConnection } from "../src/connection.ts";
import { Failure } from "../src/model/failure.ts";
import type { Settings } from "./decide/build.ts";
import { breakOff, createPair, eventually, listenTo, settle } from "./support/loopback.ts";
import { createWorld, PEER } from "./support/world.ts";
import { extension, hello, sni } from "./wire/hello-support.ts";

const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";
const TUNNEL: Settings = { network: { allowlist: [{ domain: "a.example" }] } };
const NEVER: Settings = { network: { allowlist: [{ domain: "a.example", intercept: "never" }] } };
const TCP: Settings = { network: { allowlist: [{ domain: "a.example", ports: [5432], protocol: "tcp" }] } };
const HELLO = hello({ extensions: [sni("a.example")] });
const ECH = hello({ extensions: [sni("a.example"), extension(0xfe0d, Buffer.alloc(4))] });
const OTHER = hello({ extensions: [sni("b.example")] });
const NAMELESS = hello({ extensions: [extension(43, Buffer.of(2, 3, 4))] });

test("runTunnel passes a hello for the decided name and all that follows, unseen, and records it once", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  for (const byte of HELLO) client.send(Buffer.of(byte));
  const origin = await world.origin(0);
  await origin.until(HELLO.toString("latin1"));
  origin.send("sealed answer");
  await client.until("sealed answer");
  client.socket.end("bye");
  await origin.ended;
  origin.socket.end();
  const record = await world.record(0);
  assert.deepEqual(
    [record.method, record.protocol, record.visibility, record.verdict, record.status],
    ["CONNECT", "tls-tunnel", "destination", "allow", 200],
  );
  assert.deepEqual([record.bytesOut, record.bytesIn], [HELLO.length + 3, 13]);
  assert.equal(world.world.live.size, 0);
  assert.equal(world.records.length, 1);
});

test("runTunnel sends an upstream nothing that it refuses, and tells the client in an alert", async (context) => {
  const cases = [
    [TUNNEL, OTHER, "names-disagree"],
    [TUNNEL, NAMELESS, "no-name"],
    [TUNNEL, Buffer.from("SSH-2.0-x\r\n"), "needs-inspection"],
    [NEVER, Buffer.from("GET / HTTP/1.1\r\n"), "needs-inspection"],
    [NEVER, ECH, "needs-inspection"],
  ] as const;
  for (const [settings, bytes, reason] of cases) {
    const { client, world } = await run(context, settings, 443);
    client.send(bytes);
    await client.ended;
    assert.ok(client.text.slice(ESTABLISHED.length).startsWith("\x15\x03"), reason);
    const origin = await world.origin(0);
    await origin.ended;
    assert.equal(origin.text, "");
    const record = await world.record(0);
    assert.deepEqual([record.verdict, record.reason], ["deny", reason]);
  }
});

test("runTunnel lets a hello with ECH, and plain HTTP, be looked into where the rule lets it", async (context) => {
  const { client, world } = await run(context, TUNNEL, 80);
  client.send("GET /inside HTTP/1.1\r\nHost: a.example\r\n\r\n");
  const origin = await world.origin(1);
  await origin.until("GET /inside HTTP/1.1\r\n");
  origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  await client.until("ok");
  assert.equal((await world.record(0)).visibility, "request");
  const hidden = await run(context, TUNNEL, 443);
  hidden.client.send(ECH);
  // Our own handshake answers this hello, which no real client made: with an alert.
  await hidden.client.until("\x15\x03");
  assert.equal((await hidden.world.origin(0)).text, "");
});

test("runTunnel answers the CONNECT in words where the upstream cannot be had", async (context) => {
  const world = createWorld(context, TUNNEL);
  world.refuse = () => {
    throw new Failure("E_CONNECT", "upstream", "The upstream refused the connection");
  };
  const client = await open(context, world, 443);
  await client.ended;
  assert.match(client.text, /^HTTP\/1\.1 502 Bad Gateway \(E_CONNECT\)\r\n/);
  assert.equal((await world.record(0)).failure, "E_CONNECT");
  const refused = createWorld(context, TUNNEL);
  refused.refuse = () => ({
    kind: "refused",
    denial: { verdict: "deny", reason: "address-not-public", rule: undefined },
  });
  const other = await open(context, refused, 443);
  await other.ended;
  assert.match(other.text, /^HTTP\/1\.1 403 Blocked \(address-not-public\)\r\n/);
});

test("runTunnel closes both sides where no hello comes in time", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  world.deadlines.pass(world.limits.handshake_timeout);
  await client.ended;
  await (await world.origin(0)).ended;
  assert.equal((await world.record(0)).failure, "E_TIMEOUT");
});

test("runTunnel cuts a tunnel whose name is refused by a new policy, and records the refusal", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  client.send(HELLO);
  const origin = await world.origin(0);
  await origin.until("a.example");
  world.reload({ network: { allowlist: [{ domain: "a.example" }, { domain: "b.example" }] } });
  origin.send("still there");
  await client.until("still there");
  world.reload({ network: { allowlist: [{ domain: "b.example" }] } });
  await Promise.all([client.ended, origin.ended]);
  assert.deepEqual([(await world.record(0)).reason, world.records.length], ["no-rule-matched", 1]);
});

test("runTunnel cuts a tunnel whose address is refused by a new policy", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  client.send(HELLO);
  const origin = await world.origin(0);
  await origin.until("a.example");
  world.reload({ ...TUNNEL, upstream: { deny_ranges: [PEER] } });
  await Promise.all([client.ended, origin.ended]);
  assert.deepEqual([(await world.record(0)).reason, world.records.length], ["address-denied", 1]);
});

test("runTunnel lets no hello pass to an address that was refused meanwhile", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  world.reload({ ...TUNNEL, upstream: { deny_ranges: [PEER] } });
  client.send(HELLO);
  await client.ended;
  assert.equal((await world.origin(0)).text, "");
  assert.equal((await world.record(0)).reason, "address-denied");
});

test("runTunnel is decided from the start where the policy changes while it dials", async (context) => {
  const world = createWorld(context, TUNNEL);
  const { near, far } = await createPair(context);
  const first = listenTo(far);
  world.refuse = () => {
    world.refuse = undefined;
    world.reload(TUNNEL);
    return { kind: "ready", upstream: near };
  };
  const client = await open(context, world, 443);
  await client.until(ESTABLISHED);
  client.send(HELLO);
  await (await world.origin(0)).until("a.example");
  await first.ended;
  assert.equal(first.text, "");
});

test("runTunnel under a tcp rule lets the server speak first, and holds a client's hello to its name", async (context) => {
  const { client, world } = await run(context, TCP, 5432);
  const origin = await world.origin(0);
  origin.send("banner");
  await client.until("banner");
  client.send("query");
  await origin.until("query");
  origin.socket.end("answer");
  await client.until("answer");
  client.socket.end();
  const record = await world.record(0);
  assert.deepEqual([record.protocol, record.bytesOut, record.bytesIn], ["tcp", 5, 12]);
  const other = await run(context, TCP, 5432);
  other.client.send(OTHER);
  await other.client.ended;
  assert.equal((await other.world.record(0)).reason, "names-disagree");
  assert.equal((await other.world.origin(0)).text, "");
});

test("runTunnel under a tcp rule passes on a server that speaks and closes before the client says anything", async (context) => {
  const { client, world } = await run(context, TCP, 5432);
  (await world.origin(0)).socket.end("too many connections\n");
  assert.equal(await client.ended, "end");
  assert.match(client.text, /too many connections\n$/);
  client.socket.end();
  const record = await world.record(0);
  assert.deepEqual([record.verdict, record.bytesIn, record.failure], ["allow", 21, undefined]);
});

test("runTunnel under a tcp rule passes on a reset before the client says anything", async (context) => {
  const { client, world } = await run(context, TCP, 5432);
  const origin = await world.origin(0);
  breakOff(origin.socket as Parameters<typeof breakOff>[0]);
  assert.equal(await client.ended, "reset");
  await world.record(0);
});

test("runTunnel under a tcp rule holds a server that speaks first to what the client reads", async (context) => {
  const { client, world } = await run(context, TCP, 5432);
  client.socket.pause();
  const origin = await world.origin(0);
  const total = 40_000_000;
  origin.socket.write(Buffer.alloc(total));
  await settle(200);
  assert.ok(origin.socket.writableLength > total / 4, "most of it still waits at the server");
  client.socket.resume();
  await eventually(() => client.text.length === ESTABLISHED.length + total);
});

test("runTunnel lets no hello pass that comes after its policy was replaced", async (context) => {
  const { client, world } = await run(context, TUNNEL, 443);
  world.reload({ network: { allowlist: [{ domain: "b.example" }] } });
  client.send(HELLO);
  await client.ended;
  assert.equal((await world.origin(0)).text, "");
  assert.equal((await world.record(0)).reason, "no-rule-matched");
});

test("runTunnel cuts a tunnel in which the client has not spoken yet, too", async (context) => {
  for (const settings of [
    { network: { allowlist: [] } },
    { network: { allowlist: [{ domain: "a.example", ports: [5432] }] } },
  ]) {
    const { client, world } = await run(context, TCP, 5432);
    (await world.origin(0)).send("banner");
    await client.until("banner");
    world.reload(settings);
    await client.ended;
    assert.equal((await world.record(0)).verdict, "deny");
  }
});

test("runTunnel under a tcp rule ends an idle tunnel in which the client never spoke", async (context) => {
  const { client, world } = await run(context, TCP, 5432);
  const origin = await world.origin(0);
  world.deadlines.pass(world.limits.tunnel_idle_timeout);
  await Promise.all([client.ended, origin.ended]);
  assert.equal((await world.record(0)).failure, "E_TIMEOUT");
});

/** A tunnel whose CONNECT is answered. */
async function run(context: TestContext, settings: Settings, port: number) {
  const world = createWorld(context, settings);
  const client = await open(context, world, port);
  await client.until(ESTABLISHED);
  return { world, client };
}

async function open(context: TestContext, { world }: ReturnType<typeof createWorld>, port: number) {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined);
  const client = listenTo(far);
  runConnection(near, "explicit", world);
  client.send(`CONNECT a.example:${port} HTTP/1.1\r\nHost: a.example:${port}\r\n\r\n`);
  return client;
}
