import assert from "node:assert/strict";
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { type TestContext, test } from "node:test";
import { type ConnectionOptions, connect, createSecureContext, type TLSSocket } from "node:tls";
import { endTls } from "../../src/accept/end-tls.ts";
import { peek } from "../../src/accept/peek.ts";
import { around, breakOff, createPair, eventually, listenTo } from "../support/loopback.ts";
import { createAuthority } from "../support/pki.ts";

const NOTHING = Buffer.alloc(0);
const authority = createAuthority("Throw-away root");
const leaf = authority.issue({ names: ["a.example"] });
const CONTEXT = createSecureContext({ cert: leaf.certPem, key: leaf.keyPem });

test("endTls finishes the handshake that was peeked, and what is inside comes out", async (context) => {
  const { client, ended } = await handshake(context, {});
  const secured = await ended;
  const inside = listenTo(secured);
  const outside = listenTo(client);
  outside.send("request");
  await inside.until("request");
  inside.send("answer");
  await outside.until("answer");
  assert.equal(client.authorized, true);
  assert.equal(client.alpnProtocol, "http/1.1");
  assert.equal(client.getPeerCertificate().subject.CN, "a.example");
  assert.ok(secured.listenerCount("error") > 0);
});

test("endTls holds a connection past the handshake's deadline once that is done", async (context) => {
  const { client, ended, surroundings } = await handshake(context, {});
  const secured = await ended;
  surroundings.deadlines.pass(surroundings.limits.handshake_timeout * 2);
  const inside = listenTo(secured);
  client.write("still there");
  await inside.until("still there");
});

test("endTls negotiates what it is told to offer, in that order, and nothing where it offers nothing", async (context) => {
  const cases = [
    [["http/1.1"], "http/1.1"],
    [["h2", "http/1.1"], "h2"],
    [[], false],
  ] as const;
  for (const [alpn, wanted] of cases) {
    const options = { ALPNProtocols: ["http/1.1", "h2"] };
    const { client, ended } = await handshake(context, options, { alpn });
    await ended;
    if (!client.alpnProtocol && client.getProtocol() === null) await once(client, "secureConnect");
    assert.equal(client.alpnProtocol, wanted);
  }
});

test("endTls hears a reset after the handshake, so that it brings nothing down", async (context) => {
  const { client, ended, far } = await handshake(context, {});
  const secured = await ended;
  const inside = listenTo(secured);
  secured.write("answer");
  await listenTo(client).until("answer");
  breakOff(far);
  assert.equal(await inside.ended, "reset");
});

test("endTls refuses renegotiation", async (context) => {
  const { client, ended } = await handshake(context, { maxVersion: "TLSv1.2" });
  const [secured] = await Promise.all([ended, once(client, "secureConnect")]);
  const closed = new Promise((resolve) => secured.resume().once("close", resolve));
  client.renegotiate({}, () => client.write("after"));
  await closed;
  assert.equal(secured.bytesRead, 0);
});

test("endTls breaks off where a record is forged after the handshake", async (context) => {
  const { ended, far } = await handshake(context, {});
  const secured = await ended;
  const peer = listenTo(secured);
  far.write(Buffer.concat([Buffer.of(23, 3, 3, 0, 32), Buffer.alloc(32)]));
  assert.equal(await peer.ended, "reset");
});

test("endTls fails where the client does not trust the leaf, or leaves", async (context) => {
  const alert = Buffer.from([21, 3, 3, 0, 2, 2, 48]);
  const hello = await realHello();
  for (const leave of ["write", "end", "destroy"] as const) {
    const { near, far } = await createPair(context);
    near.on("error", () => undefined);
    far.write(hello);
    const peeked = await peek({ socket: near, early: NOTHING }, around(), 10_000);
    const ended = endTls(near, peeked.bytes, CONTEXT, around());
    const outcome = assert.rejects(ended, { name: "Failure", code: "E_BAD_HELLO", message: /trust the CA/ });
    far.once("data", () => (leave === "write" ? far.write(alert) : far[leave]()));
    await outcome;
    await eventually(() => near.destroyed);
  }
});

test("endTls fails where the handshake takes too long", async (context) => {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined);
  const surroundings = around();
  // A record that promises more than comes.
  const ended = endTls(near, Buffer.from([22, 3, 1, 0, 100, 1]), CONTEXT, surroundings);
  const outcome = assert.rejects(ended, { code: "E_TIMEOUT", fault: "client" });
  surroundings.deadlines.pass(surroundings.limits.handshake_timeout - 1);
  assert.equal(near.destroyed, false);
  surroundings.deadlines.pass(1);
  await outcome;
  await listenTo(far).ended;
});

test("endTls fails at once on a socket that is gone", async (context) => {
  const { near } = await createPair(context);
  near.destroy();
  await assert.rejects(endTls(near, NOTHING, CONTEXT, around()), { code: "E_BAD_HELLO", message: /left/ });
});

/** What a client begins with, without a client that would finish. */
async function realHello(): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connect({ socket: far, servername: "a.example" });
  client.on("error", () => undefined);
  const [bytes] = (await once(near, "data")) as [Buffer];
  client.destroy();
  return bytes;
}

async function handshake(
  context: TestContext,
  options: ConnectionOptions,
  offer: { readonly alpn?: readonly string[] } = {},
) {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined);
  const surroundings = around();
  // Over a pipe, so that the socket itself stays in the test's hands.
  const [inner, outer] = duplexPair();
  outer.pipe(far).pipe(outer);
  const client: TLSSocket = connect({
    socket: inner,
    servername: "a.example",
    ca: authority.certPem,
    ALPNProtocols: ["http/1.1"],
    ...options,
  });
  client.on("error", () => undefined);
  const peeked = await peek({ socket: near, early: NOTHING }, surroundings, 10_000);
  const ended = endTls(near, peeked.bytes, CONTEXT, { ...surroundings, ...offer });
  return { client, ended, surroundings, near, far };
}
