/** Transparent connections: what names them, what becomes of each, and that every one ends in one record. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { parseHostname } from "../src/base/hostname.ts";
import { parseIpAddress } from "../src/base/ip.ts";
import type { Original } from "../src/model/arrival.ts";
import { Failure } from "../src/model/failure.ts";
import { runTransparent } from "../src/transparent.ts";
import type { Settings } from "./decide/build.ts";
import { createPair, eventually, listenTo, type Pair, type Peer, settle } from "./support/loopback.ts";
import { createWorld, ROOT_PEM, type TestWorld } from "./support/world.ts";

const SETTINGS: Settings = {
  network: {
    allowlist: [
      { domain: "tunnel.test" },
      { domain: "inside.test", intercept: "always" },
      { domain: "never.test", intercept: "never" },
      { domain: "db.test", ports: [5432], protocol: "tcp" },
      { domain: "93.184.216.34" },
    ],
  },
};

interface To {
  readonly address?: string;
  readonly port?: number;
  readonly name?: string;
}

interface Opened extends TestWorld {
  readonly pair: Pair;
}

async function open(
  context: TestContext,
  { address = "198.18.1.0", port = 443, name }: To,
  settings = SETTINGS,
): Promise<Opened> {
  const made = createWorld(context, settings);
  const pair = await createPair(context);
  pair.near.on("error", () => undefined);
  const dialled = parseIpAddress(address);
  assert.ok(dialled);
  const host = name === undefined ? undefined : parseHostname(name);
  const original: Original = {
    client: { sandbox: undefined, address: "10.0.0.2" },
    address: dialled,
    port,
    name: host,
  };
  runTransparent(pair.near, original, "jail", made.world);
  return Object.assign(made, { pair });
}

/** The client's TLS over the connection; resolves with what came, or the alert's name. */
function overTls({ far }: Pair, servername: string | undefined, text = ""): Promise<string> {
  return new Promise((resolve) => {
    const tls = connectTls({
      socket: far,
      ca: ROOT_PEM,
      ...(servername === undefined ? {} : { servername }),
      checkServerIdentity: () => undefined,
    });
    let got = "";
    tls.once("secureConnect", () => tls.write(text));
    tls.on("data", (bytes: Buffer) => {
      got += bytes.toString("latin1");
    });
    tls.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    for (const event of ["end", "close"]) tls.once(event, () => resolve(got));
  });
}

function get(host: string): string {
  return `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
}

test("runTransparent: a tcp rule relays before anything was said, and the record has the name", async (context) => {
  const opened = await open(context, { port: 5432, name: "db.test" });
  const upstream = await opened.origin(0);
  const client = listenTo(opened.pair.far);
  upstream.send("ready");
  await client.until("ready");
  client.send("query");
  await upstream.until("query");
  opened.pair.far.destroy();
  upstream.socket.destroy();
  const record = await opened.record(0);
  assert.deepEqual(
    [record.host, record.port, record.protocol, record.verdict],
    ["db.test", 5432, "tcp", "allow"],
  );
});

test("runTransparent: SNI names the destination, whatever the address stands for", async (context) => {
  const opened = await open(context, { name: "other.test" });
  const done = overTls(opened.pair, "tunnel.test");
  const upstream = await opened.origin(0);
  await upstream.until("tunnel.test");
  opened.pair.far.destroy();
  upstream.socket.destroy();
  await done;
  const record = await opened.record(0);
  assert.deepEqual([record.host, record.protocol, record.verdict], ["tunnel.test", "tls-tunnel", "allow"]);
});

test("runTransparent: a refused name is told inside TLS, once in words and once in the records", async (context) => {
  const opened = await open(context, { name: "refused.test" });
  assert.match(
    await overTls(opened.pair, "refused.test", get("refused.test")),
    /403 .*"reason":"no-rule-matched"/s,
  );
  assert.deepEqual(
    opened.records.map(({ host, reason, visibility }) => [host, reason, visibility]),
    [["refused.test", "no-rule-matched", "request"]],
  );
  assert.equal(opened.origins.length, 0);
});

test("runTransparent: a refused name is recorded though nothing is asked, or the CA is not trusted", async (context) => {
  const quiet = await open(context, { name: "refused.test" });
  const tls = connectTls({
    socket: quiet.pair.far,
    ca: ROOT_PEM,
    servername: "refused.test",
    checkServerIdentity: () => undefined,
  });
  tls.once("secureConnect", () => tls.destroy());
  tls.on("error", () => undefined);
  assert.equal((await quiet.record(0)).reason, "no-rule-matched");
  const distrust = await open(context, { name: "refused.test" });
  const other = connectTls({ socket: distrust.pair.far, ca: [], servername: "refused.test" });
  other.on("error", () => undefined);
  const record = await distrust.record(0);
  assert.deepEqual([record.reason, record.failure], ["no-rule-matched", undefined]);
});

test("runTransparent: what is refused on the way to a tunnel is told in words, if TLS may be ended", async (context) => {
  const opened = await open(context, {});
  const denial = { verdict: "deny", reason: "address-not-public", rule: "tunnel.test" } as const;
  opened.refuse = () => ({ kind: "refused", denial });
  const answer = await overTls(opened.pair, "tunnel.test", get("tunnel.test"));
  assert.match(answer, /403 .*"reason":"address-not-public"/s);
  const never = await open(context, {});
  never.refuse = () => ({ kind: "refused", denial });
  assert.equal(await overTls(never.pair, "never.test"), "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED");
  assert.equal((await never.record(0)).reason, "address-not-public");
});

test("runTransparent: an upstream that fails is told in words, if TLS may be ended", async (context) => {
  const opened = await open(context, {});
  opened.refuse = () => {
    throw new Failure("E_CONNECT", "upstream", "No");
  };
  assert.match(await overTls(opened.pair, "tunnel.test", get("tunnel.test")), /502 .*E_CONNECT/s);
  const never = await open(context, {});
  never.refuse = opened.refuse;
  assert.equal(await overTls(never.pair, "never.test"), "ECONNRESET");
  assert.equal((await never.record(0)).failure, "E_CONNECT");
});

test("runTransparent: without a name there is an alert, but for a literal that an entry has", async (context) => {
  for (const [to, reason] of [
    [{ address: "1.2.3.4" }, "no-name"],
    [{ name: "tunnel.test" }, "no-name"],
    [{ address: "127.0.0.1" }, "loopback"],
    [{ address: "10.0.0.1" }, "address-not-public"],
  ] as const) {
    const opened = await open(context, to);
    assert.equal(await overTls(opened.pair, undefined), "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED");
    assert.equal((await opened.record(0)).reason, reason);
  }
  const literal = await open(context, { address: "93.184.216.34" });
  const done = overTls(literal.pair, undefined);
  await (await literal.origin(0)).until("\x16\x03");
  literal.pair.far.destroy();
  await done;
});

test("runTransparent: a listed name at the sandbox's own loopback is refused, and nobody is asked", async (context) => {
  const opened = await open(context, { address: "::1" });
  assert.equal(await overTls(opened.pair, "inside.test"), "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED");
  assert.equal((await opened.record(0)).reason, "loopback");
  assert.equal(opened.origins.length, 0);
});

async function say(opened: Opened, bytes: string): Promise<Peer> {
  const peer = listenTo(opened.pair.far);
  peer.send(Buffer.from(bytes, "latin1"));
  await peer.ended;
  return peer;
}

test("runTransparent: HTTP is decided by Host, which must be what the address stands for", async (context) => {
  for (const [to, host, status, reason] of [
    [{ name: "refused.test" }, "refused.test", 403, "no-rule-matched"],
    [{ name: "other.test" }, "tunnel.test", 421, "names-disagree"],
    [{}, "tunnel.test:81", 421, "names-disagree"],
    [{ address: "1.2.3.4" }, "1.2.3.4", 403, "no-name"],
    [{ address: "1.2.3.4" }, "93.184.216.34", 421, "names-disagree"],
    [{ address: "127.0.0.1" }, "tunnel.test", 403, "loopback"],
  ] as const) {
    const opened = await open(context, { port: 80, ...to });
    const { text } = await say(opened, get(host));
    assert.ok(text.startsWith(`HTTP/1.1 ${status} `) && text.includes(`"reason":"${reason}"`), text);
    assert.equal((await opened.record(0)).reason, reason);
  }
  const nameless = await open(context, { port: 80, name: "tunnel.test" });
  assert.match((await say(nameless, "GET / HTTP/1.0\r\n\r\n")).text, /"reason":"no-name"/);
  const clear = await open(context, { name: "tunnel.test" });
  assert.match((await say(clear, get("tunnel.test:443"))).text, /"reason":"needs-inspection"/);
});

test("runTransparent: a CONNECT on it is refused, whatever it names", async (context) => {
  const opened = await open(context, { port: 80 });
  const { text } = await say(opened, "CONNECT tunnel.test:80 HTTP/1.1\r\nHost: tunnel.test:80\r\n\r\n");
  assert.match(text, /^HTTP\/1.1 403 Blocked \(method-refused\)/);
});

test("runTransparent: what is neither TLS nor HTTP is a reset", async (context) => {
  for (const [to, reason] of [
    [{ name: "tunnel.test" }, "needs-inspection"],
    [{ name: "refused.test" }, "no-rule-matched"],
    [{ address: "1.2.3.4" }, "no-name"],
    [{ address: "127.0.0.1" }, "loopback"],
  ] as const) {
    const opened = await open(context, to);
    const peer = await say(opened, "\x00\x01");
    assert.deepEqual([peer.ending, peer.text], ["reset", ""]);
    assert.equal((await opened.record(0)).reason, reason);
  }
});

test("runTransparent: silence, a broken hello and too many connections end in a reset", async (context) => {
  const silent = await open(context, {});
  const peer = listenTo(silent.pair.far);
  silent.deadlines.pass(20_000);
  assert.equal(await peer.ended, "reset");
  assert.equal((await silent.record(0)).failure, "E_TIMEOUT");
  const broken = await open(context, {});
  assert.equal((await say(broken, "\x16\x03\x01\x00\x04\x01\x00\x00\x00")).ending, "reset");
  assert.equal((await broken.record(0)).failure, "E_BAD_HELLO");

  const made = createWorld(context, SETTINGS, { limits: { connections: 0 } });
  const pair = await createPair(context);
  pair.near.on("error", () => undefined);
  const address = parseIpAddress("1.2.3.4");
  assert.ok(address);
  const original = { client: { sandbox: undefined, address: "" }, address, port: 443, name: undefined };
  runTransparent(pair.near, original, "gateway", made.world);
  assert.equal(await listenTo(pair.far).ended, "reset");
});

test("runTransparent: a stop ends whoever has said nothing, and cuts who is half-way through a hello", async (context) => {
  const silent = await open(context, {});
  const waiting = listenTo(silent.pair.far);
  silent.world.connections.each(({ holder }) => holder.drain());
  assert.equal(await waiting.ended, "reset");
  assert.equal((await silent.record(0)).failure, "E_BAD_HELLO");
  await eventually(() => silent.world.connections.size === 0);

  const half = await open(context, {});
  const peer = listenTo(half.pair.far);
  peer.send("\x16\x03\x01");
  await eventually(() => half.pair.near.bytesRead === 3);
  let closed = false;
  half.world.connections.each(({ holder }) => {
    holder.whenClosed(() => {
      closed = true;
    });
    holder.drain();
  });
  await settle();
  assert.equal(peer.ending, undefined);
  half.world.connections.each(({ holder }) => holder.cut());
  assert.equal(await peer.ended, "reset");
  await eventually(() => closed && half.world.connections.size === 0);
});

test("runTransparent: a sandbox has so many connections, and one that is gone has none", async (context) => {
  const made = createWorld(context, SETTINGS, { limits: { connections_per_sandbox: 0 } });
  const pair = await createPair(context);
  pair.near.on("error", () => undefined);
  const address = parseIpAddress("198.18.1.0");
  assert.ok(address);
  runTransparent(
    pair.near,
    { client: { sandbox: "x", address: "" }, address, port: 443, name: undefined },
    "jail",
    made.world,
  );
  assert.equal(await listenTo(pair.far).ended, "reset");
  assert.equal((await made.record(0)).reason, "limit-exceeded");
});
