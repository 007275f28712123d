import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import tls, { type SecureContext, TLSSocket, type TlsOptions } from "node:tls";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { createUpstreamTls, type SecureOptions, type UpstreamHost } from "../../src/forward/upstream-tls.ts";
import { Failure } from "../../src/model/failure.ts";
import { makeChains } from "../support/chains.ts";
import { createAuthority, type LeafOptions } from "../support/pki.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-upstream-tls-"));
after(() => rmSync(dir, { recursive: true }));

const DAY = 86_400_000;
const NAME = "api.example.com";
const NEVER = new AbortController().signal;
const OPTIONS: SecureOptions = { timeoutMs: 5_000, alpn: ["http/1.1"], signal: NEVER };
const authority = createAuthority("Throw-away root");
const caFile = join(dir, "roots.pem");
writeFileSync(caFile, `Roots of our own\n${authority.certPem}\n`);
const upstreamTls = createUpstreamTls({ caFile });

test("secure verifies a name and an address, and negotiates what was offered", async (context) => {
  const heard: (string | false | null)[] = [];
  const port = await serve(context, { names: [NAME], addresses: ["127.0.0.1"] }, (secured) => {
    heard.push(secured.servername ?? null, secured.alpnProtocol);
  });
  const byName = await secure(port, name(NAME));
  assert.equal(byName.authorized, true);
  assert.equal(byName.alpnProtocol, "http/1.1");
  assert.equal(byName.getProtocol(), "TLSv1.3");
  assert.ok(byName.listenerCount("error") > 0);
  const byAddress = await secure(port, literal("127.0.0.1"), { alpn: [] });
  assert.equal(byAddress.alpnProtocol, false);
  await echo(byAddress);
  // No SNI for a literal, and no ALPN where none was offered.
  assert.deepEqual(heard, [NAME, "http/1.1", false, false]);
});

test("secure refuses each wrong certificate before a byte of ours is on its way", async (context) => {
  const past = new Date(Date.now() - DAY);
  const future = new Date(Date.now() + DAY);
  const other = createAuthority("Another root");
  const cases: [string, UpstreamHost, LeafOptions, RegExp][] = [
    ["expired", name(NAME), { names: [NAME], notBefore: new Date(0), notAfter: past }, /has expired/],
    ["not yet valid", name(NAME), { names: [NAME], notBefore: future }, /not valid yet/],
    ["self-signed", name(NAME), { names: [NAME], selfSigned: true }, /not from a trusted authority/],
    ["wrong name", name(NAME), { names: ["www.example.com"] }, /for another name/],
    ["name in the CN alone", name(NAME), { commonName: NAME }, /for another name/],
    ["right CN, wrong SAN", name(NAME), { commonName: NAME, names: ["b.example"] }, /for another name/],
    ["wildcard of a TLD", name("example.com"), { names: ["*.com"] }, /for another name/],
    ["wildcard two levels up", name(NAME), { names: ["*.*.com"] }, /for another name/],
    ["wildcard over two labels", name("a.b.example.com"), { names: ["*.example.com"] }, /for another name/],
    ["wildcard over the apex", name("example.com"), { names: ["*.example.com"] }, /for another name/],
    ["partial wildcard", name(NAME), { names: ["a*.example.com"] }, /for another name/],
    ["NUL within the name", name(NAME), { names: [`${NAME}\0.evil.example`] }, /for another name/],
    ["quoted name", name(NAME), { names: [`b.example, DNS:${NAME}`] }, /for another name/],
    ["address in a dNSName", literal("127.0.0.1"), { names: ["127.0.0.1"] }, /for another name/],
    ["address in the CN", literal("127.0.0.1"), { commonName: "127.0.0.1" }, /for another name/],
    ["another address", literal("127.0.0.1"), { addresses: ["127.0.0.2"] }, /for another name/],
    ["unknown authority", name(NAME), { names: [NAME] }, /not from a trusted authority/],
  ];
  for (const [label, host, options, message] of cases) {
    const received: Buffer[] = [];
    const { certPem, keyPem } = (label === "unknown authority" ? other : authority).issue(options);
    const secureContext = tls.createSecureContext({ cert: certPem, key: keyPem });
    const { port, socket } = await listen(context, secureContext, (secured) =>
      secured.on("data", received.push),
    );
    await assert.rejects(
      secure(port, host),
      { name: "Failure", code: "E_UPSTREAM_TLS", fault: "upstream", message },
      label,
    );
    await closed(await socket);
    assert.deepEqual(received, [], label);
  }
});

test("secure takes a wildcard for exactly one label", async (context) => {
  const port = await serve(context, { names: ["*.example.com"] });
  await echo(await secure(port, name(NAME)));
});

test("secure verifies chains as OpenSSL does: constraints, purposes, and no leaf as an authority", async (context) => {
  const made = makeChains(dir, NAME);
  const tlsOfChains = createUpstreamTls({ caFile: made.root });
  for (const [chain, accepted] of made.chains) {
    const secureContext = tls.createSecureContext({ cert: chain.cert, key: chain.key });
    const { port } = await listen(context, secureContext);
    const attempt = tlsOfChains.secure(await plain(port), name(NAME), OPTIONS);
    if (accepted) (await attempt).destroy();
    else await assert.rejects(attempt, { code: "E_UPSTREAM_TLS" }, chain.label);
  }
});

test("secure refuses TLS before 1.2, what is no TLS, and a peer that hangs up", async (context) => {
  const { certPem, keyPem } = authority.issue({ names: [NAME] });
  const old = tls.createSecureContext({
    cert: certPem,
    key: keyPem,
    minVersion: "TLSv1",
    maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0",
  });
  const { port } = await listen(context, old);
  await assert.rejects(secure(port, name(NAME)), { code: "E_UPSTREAM_TLS", message: /acceptable TLS/ });

  for (const [greet, message] of [
    [(peer: Socket) => peer.end("HTTP/1.1 400 Bad Request\r\n\r\n"), /acceptable TLS/],
    [(peer: Socket) => peer.end(), /closed the connection during/],
    [(peer: Socket) => peer.once("data", () => peer.resetAndDestroy()), /closed the connection during/],
  ] as const) {
    const bare = await listenBare(context, greet);
    await assert.rejects(secure(bare, name(NAME)), { code: "E_UPSTREAM_TLS", message });
  }
});

test("secure fails in time where the handshake stalls, with the status that says so", async (context) => {
  const port = await listenBare(context, (peer) => peer.resume());
  const socket = await plain(port);
  const stalled = upstreamTls.secure(socket, name(NAME), { ...OPTIONS, timeoutMs: 30 });
  await assert.rejects(stalled, { code: "E_UPSTREAM_TLS", fault: "upstream", status: 504 });
  await closed(socket);
});

test("secure ends with its signal, whose Failure it passes on, and leaves no socket open", async (context) => {
  const port = await listenBare(context, (peer) => peer.resume());
  const controller = new AbortController();
  const socket = await plain(port);
  const pending = upstreamTls.secure(socket, name(NAME), { ...OPTIONS, signal: controller.signal });
  controller.abort();
  await assert.rejects(pending, { code: "E_UPSTREAM_TLS", fault: "client" });
  await closed(socket);

  const failure = new Failure("E_TIMEOUT", "upstream", "Over");
  const late = await plain(port);
  const never = upstreamTls.secure(late, name(NAME), { ...OPTIONS, signal: AbortSignal.abort(failure) });
  await assert.rejects(never, (error) => error === failure);
  await closed(late);
  await assert.rejects(upstreamTls.secure(late, name(NAME), OPTIONS), {
    code: "E_UPSTREAM_TLS",
    fault: "upstream",
  });
});

for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`secure resumes a ${maxVersion} session that it is given, and only for the host that it was for`, async (context) => {
    const names = [NAME, "b.example.com"];
    const port = await serve(context, { names, addresses: ["127.0.0.1"] }, () => undefined, { maxVersion });
    const session = await sessionOf(port, name(NAME));
    const reused = async (host: UpstreamHost) => {
      const secured = await secure(port, host, { session });
      assert.equal(secured.authorized, true);
      await echo(secured);
      return secured.isSessionReused();
    };
    assert.equal(await reused(name(NAME)), true);
    assert.equal(await reused(name("b.example.com")), false);
    assert.equal(await reused(literal("127.0.0.1")), false);
    const ofLiteral = await sessionOf(port, literal("127.0.0.1"));
    const again = await secure(port, literal("127.0.0.1"), { session: ofLiteral });
    assert.equal(again.isSessionReused(), true);
    // A copy, of whatever origin, is not known to be verified.
    const copied = await secure(port, name(NAME), { session: Buffer.from(session) });
    assert.equal(copied.isSessionReused(), false);
    context.mock.timers.enable({ apis: ["Date"], now: Date.now() + DAY });
    assert.equal(await reused(name(NAME)), false, "a day later the certificate is looked at again");
  });
}

test("secure gives no session of a connection that it did not accept", async (context) => {
  const port = await serve(context, { names: ["www.example.com"] }, () => undefined, {
    maxVersion: "TLSv1.2",
  });
  let sessions = 0;
  await assert.rejects(secure(port, name(NAME), { onSession: () => (sessions += 1) }), {
    code: "E_UPSTREAM_TLS",
  });
  assert.equal(sessions, 0);
});

test("secure does not renegotiate when the upstream wants to", async (context) => {
  const { certPem, keyPem } = authority.issue({ names: [NAME] });
  writeFileSync(join(dir, "leaf.pem"), certPem);
  writeFileSync(join(dir, "leaf.key"), keyPem, { mode: 0o600 });
  const files = ["-cert", join(dir, "leaf.pem"), "-key", join(dir, "leaf.key")];
  const server = spawn("openssl", ["s_server", "-accept", "127.0.0.1:0", "-tls1_2", ...files]);
  context.after(() => server.kill());
  let print = "";
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (bytes) => (print += bytes));
  const port = await waitFor(() => /ACCEPT 127\.0\.0\.1:([0-9]+)/.exec(print)?.[1]);
  const secured = await secure(Number(port), name(NAME));
  const finished = secured.getFinished();
  secured.resume();
  server.stdin.write("R\n");
  await waitFor(() => /no renegotiation|renegotiat.*fail|SSL_do_handshake -> -1/i.exec(print)?.[0]);
  assert.deepEqual(secured.getFinished(), finished);
  secured.destroy();
});

test("secure verifies whatever NODE_TLS_REJECT_UNAUTHORIZED says", async (context) => {
  const port = await serve(context, { names: [NAME], selfSigned: true });
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `import { createUpstreamTls } from ${url("../../src/forward/upstream-tls.ts")};
    import { connect } from "node:net";
    const socket = connect(${port}, "127.0.0.1");
    const options = { timeoutMs: 5000, alpn: [], signal: new AbortController().signal };
    const host = { kind: "name", host: ${JSON.stringify(NAME)} };
    createUpstreamTls({ caFile: undefined }).secure(socket, host, options)
      .then(() => "verified", (error) => error.code).then((word) => process.stdout.write(word));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [output] = await once(child.stdout, "data");
  assert.equal(String(output), "E_UPSTREAM_TLS");
});

test("createUpstreamTls refuses a file of roots that it cannot use, and says what is wrong", () => {
  const cases: [string, string | Buffer | undefined, RegExp][] = [
    ["absent.pem", undefined, /cannot be read \(ENOENT\)/],
    ["empty.pem", "", /holds no PEM certificate/],
    ["text.pem", "-----BEGIN CERTIFICATE-----", /holds no PEM certificate/],
    [
      "broken.pem",
      `${authority.certPem}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
      /Certificate 2 of/,
    ],
    ["huge.pem", Buffer.alloc(16_777_217, "a"), /larger than 16 MiB/],
  ];
  for (const [file, content, message] of cases) {
    const path = join(dir, file);
    if (content !== undefined) writeFileSync(path, content);
    assert.throws(
      () => createUpstreamTls({ caFile: path }),
      { code: "E_CONFIG", fault: "operator", message },
      file,
    );
  }
});

/** A server with one leaf of the trusted authority, which sends back what it gets. */
async function serve(
  context: TestContext,
  leaf: LeafOptions,
  onSecure: (secured: TLSSocket) => void = () => undefined,
  options: TlsOptions = {},
): Promise<number> {
  const { certPem, keyPem } = authority.issue(leaf);
  const server = tls.createServer({ cert: certPem, key: keyPem, ALPNProtocols: ["http/1.1"], ...options });
  server.on("tlsClientError", () => undefined);
  server.on("secureConnection", (secured) => {
    secured.on("error", () => undefined);
    onSecure(secured);
    secured.pipe(secured);
  });
  return await portOf(context, server);
}

async function listen(
  context: TestContext,
  secureContext: SecureContext,
  onSecure: (secured: TLSSocket) => void = () => undefined,
): Promise<{ port: number; socket: Promise<Socket> }> {
  const server = createServer();
  const socket = once(server, "connection").then(([peer]: Socket[]) => {
    assert.ok(peer !== undefined);
    const secured = new TLSSocket(peer, { isServer: true, secureContext });
    for (const each of [peer, secured]) each.on("error", () => undefined);
    onSecure(secured);
    secured.resume();
    return peer;
  });
  return { port: await portOf(context, server), socket };
}

async function listenBare(context: TestContext, onPeer: (peer: Socket) => void): Promise<number> {
  const server = createServer((peer) => {
    peer.on("error", () => undefined);
    onPeer(peer);
  });
  return await portOf(context, server);
}

async function portOf(context: TestContext, server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on("connection", (socket) => open.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function plain(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

async function secure(
  port: number,
  host: UpstreamHost,
  options: Partial<SecureOptions> = {},
): Promise<TLSSocket> {
  return await upstreamTls.secure(await plain(port), host, { ...OPTIONS, ...options });
}

/** The first session of a new connection; TLS 1.3 sends it with the first bytes. */
async function sessionOf(port: number, host: UpstreamHost): Promise<Buffer> {
  return await new Promise((resolve, reject) => {
    secure(port, host, { onSession: resolve }).then((secured) => secured.resume(), reject);
  });
}

async function echo(secured: TLSSocket): Promise<void> {
  secured.write("hello");
  const [bytes] = await once(secured, "data");
  assert.equal(String(bytes), "hello");
  secured.end();
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
}

async function waitFor<T>(look: () => T | undefined): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined) return found;
    await new Promise(setImmediate);
  }
}

function name(text: string): UpstreamHost {
  const host = parseHostname(text);
  assert.ok(host !== undefined);
  return { kind: "name", host };
}

function literal(text: string): UpstreamHost {
  const address = parseIpAddress(text);
  assert.ok(address !== undefined);
  return { kind: "address", address };
}
