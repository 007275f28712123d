import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { type ConnectionOptions, connect, type SecureContext, TLSSocket } from "node:tls";
import { openCa } from "../../src/pki/ca.ts";
import { createLeafCache, type LeafCache, type LeafCacheOptions } from "../../src/pki/leaf-cache.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-leaf-cache-"));
after(() => rmSync(dir, { recursive: true }));

const DAY = 86_400_000;
const NAME = "api.example.com";
const CA_FILE = join(dir, "ca.pem");
const ca = openCa(dir);

test("createLeafCache serves leaves that ordinary clients accept in their strictest mode", async (context) => {
  const cache = makeCache().cache;
  const port = await listen(context, () => cache.contextFor(undefined, NAME));
  const python = `import socket, ssl, sys
c = ssl.create_default_context(cafile=sys.argv[1]); c.verify_flags |= ssl.VERIFY_X509_STRICT
s = c.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[2]))), server_hostname=sys.argv[3])
print(s.recv(9).decode())`;
  const strict = [
    "-x509_strict",
    "-verify_return_error",
    "-verify_hostname",
    NAME,
    "-servername",
    NAME,
    "-quiet",
  ];
  const outputs = await Promise.all([
    run("openssl", "s_client", "-connect", `127.0.0.1:${port}`, "-CAfile", CA_FILE, ...strict),
    run("python3", "-c", python, CA_FILE, String(port), NAME),
    run("curl", "-sS", "--http0.9", "--cacert", CA_FILE, "--resolve", `${NAME}:${port}:127.0.0.1`, url(port)),
  ]);
  assert.deepEqual(outputs, ["greeting\n", "greeting\n\n", "greeting\n"]);
  const { client } = await handshake(port, { servername: NAME });
  assert.equal(client.authorized, true);
  assert.equal(client.getProtocol(), "TLSv1.3");
});

test("createLeafCache serves leaves for address literals", async (context) => {
  const cache = makeCache().cache;
  const port = await listen(context, () => cache.contextFor(undefined, "127.0.0.1"));
  const { client } = await handshake(port, {});
  assert.equal(client.authorized, true);
});

test("contextFor keeps what it minted, and says which is which", () => {
  const { cache, events } = makeCache();
  const first = cache.contextFor("a", NAME);
  assert.ok(first !== undefined);
  assert.equal(cache.contextFor("a", NAME), first);
  assert.notEqual(cache.contextFor("b", NAME), first);
  assert.notEqual(cache.contextFor(undefined, NAME), first);
  assert.deepEqual(events, ["minted", "cached", "minted", "minted"]);
  assert.equal(cache.entries, 3);
  cache.close();
  assert.equal(cache.entries, 0);
});

test("contextFor gives each sandbox a share that no other can evict", () => {
  const { cache, events } = makeCache({ limits: { leaf_cache: 3, leaf_mints_per_minute: 100 } });
  cache.contextFor("quiet", NAME);
  for (let index = 0; index < 20; index++) cache.contextFor("noisy", `n${index}.example`);
  assert.equal(cache.entries, 4);
  events.length = 0;
  cache.contextFor("quiet", NAME);
  assert.deepEqual(events, ["cached"]);
});

test("contextFor evicts what was used least recently", () => {
  const { cache, events } = makeCache({ limits: { leaf_cache: 2, leaf_mints_per_minute: 100 } });
  for (const name of ["a.example", "b.example", "a.example", "c.example"]) cache.contextFor("s", name);
  events.length = 0;
  for (const name of ["a.example", "c.example", "b.example"]) cache.contextFor("s", name);
  assert.deepEqual(events, ["cached", "cached", "minted"]);
});

test("contextFor refuses past the minting budget, of this sandbox alone, and refills steadily", () => {
  const { cache, events, clock } = makeCache({ limits: { leaf_cache: 100, leaf_mints_per_minute: 6 } });
  const ask = (sandbox: string, name: string) => cache.contextFor(sandbox, name) !== undefined;
  for (let index = 0; index < 6; index++) assert.equal(ask("a", `n${index}.example`), true);
  assert.equal(ask("a", "one-too-many.example"), false);
  assert.equal(events.at(-1), "refused");
  assert.equal(ask("a", "n0.example"), true, "what is cached costs nothing");
  assert.equal(ask("b", "n0.example"), true);
  clock.now += 10_000;
  assert.equal(ask("a", "after-ten-seconds.example"), true);
  assert.equal(ask("a", "and-another.example"), false);
  clock.now += 3_600_000 * 0.9;
  for (let index = 0; index < 6; index++) assert.equal(ask("a", `m${index}.example`), true);
  assert.equal(
    ask("a", "still-one-too-many.example"),
    false,
    "a long rest saves up no more than a minute's worth",
  );
  clock.now -= DAY;
  assert.equal(ask("a", "clock-set-back.example"), false);
});

test("contextFor renews a leaf halfway through its life", () => {
  const { cache, clock } = makeCache();
  const first = cache.contextFor("a", NAME);
  clock.now += 15 * DAY - 1;
  assert.equal(cache.contextFor("a", NAME), first);
  clock.now += 1;
  assert.notEqual(cache.contextFor("a", NAME), first);
  assert.equal(cache.entries, 1);
});

test("contextFor mints anew where the clock was set back before the leaf's start", () => {
  const { cache, clock } = makeCache();
  const first = cache.contextFor("a", NAME);
  clock.now -= DAY - 1;
  assert.equal(cache.contextFor("a", NAME), first);
  clock.now -= 1;
  assert.notEqual(cache.contextFor("a", NAME), first);
});

test("contextFor does not mint for each connection once the authority is about to end", () => {
  const { cache, clock } = makeCache();
  clock.now = ca.notAfter.getTime() - 1;
  const last = cache.contextFor("a", NAME);
  clock.now += 30_000;
  assert.equal(cache.contextFor("a", NAME), last);
});

test("contextFor forgets the share of a sandbox that nobody used for an hour", () => {
  const { cache, clock } = makeCache();
  cache.contextFor("gone", NAME);
  clock.now += 3_600_001;
  cache.contextFor("new", NAME);
  assert.equal(cache.entries, 1);
});

for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
  test(`contextFor lets a ${maxVersion} client resume in another worker, but not across sandboxes or names`, async (context) => {
    const ticketSecret = randomBytes(32);
    const here = makeCache({ ticketSecret }).cache;
    const worker = makeCache({ ticketSecret }).cache;
    let serve = here.contextFor("a", NAME);
    const port = await listen(context, () => serve);
    const session = await (await handshake(port, { servername: NAME, maxVersion })).session;

    const resumes = async (next: SecureContext | undefined) => {
      serve = next;
      // The name is another's at times; what counts is whether the ticket opens.
      const options = { servername: NAME, maxVersion, session, checkServerIdentity: () => undefined };
      return (await handshake(port, options)).client.isSessionReused();
    };
    assert.equal(await resumes(here.contextFor("a", NAME)), true);
    assert.equal(await resumes(worker.contextFor("a", NAME)), true);
    assert.equal(await resumes(here.contextFor("b", NAME)), false);
    assert.equal(await resumes(here.contextFor(undefined, NAME)), false);
    assert.equal(await resumes(here.contextFor("a", "other.example.com")), false);
    assert.equal(await resumes(makeCache().cache.contextFor("a", NAME)), false);
  });
}

test("contextFor refuses TLS before 1.2, and renegotiation within 1.2", async (context) => {
  const cache = makeCache().cache;
  const port = await listen(context, () => cache.contextFor(undefined, NAME), true);
  const old = {
    servername: NAME,
    minVersion: "TLSv1.1",
    maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0",
  } as const;
  await assert.rejects(handshake(port, old), /alert protocol version/);

  const { client } = await handshake(port, { servername: NAME, maxVersion: "TLSv1.2" });
  const refused = once(client, "error");
  client.renegotiate({}, () => undefined);
  const [error] = await refused;
  assert.match(String(error), /no renegotiation/i);
});

function makeCache(options: Partial<LeafCacheOptions> = {}): {
  cache: LeafCache;
  events: string[];
  clock: { now: number };
} {
  const events: string[] = [];
  const clock = { now: Date.now() };
  const cache = createLeafCache({
    ca,
    limits: { leaf_cache: 100, leaf_mints_per_minute: 100 },
    now: () => clock.now,
    ticketSecret: randomBytes(32),
    onEvent: (source) => events.push(source),
    ...options,
  });
  return { cache, events, clock };
}

/** The context is chosen before the handshake, as behind CONNECT. Greets and ends, unless it `stays`. */
async function listen(
  context: { after(task: () => void): void },
  contextOf: () => SecureContext | undefined,
  stays = false,
): Promise<number> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    const secureContext = contextOf();
    assert.ok(secureContext !== undefined);
    const secured = new TLSSocket(socket, { isServer: true, secureContext });
    secured.on("error", () => undefined);
    if (stays) secured.resume();
    else secured.end("greeting\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}

/** `session`: the first that the server gives, which in TLS 1.3 follows the handshake; none after a resumption in 1.2. */
async function handshake(
  port: number,
  options: ConnectionOptions,
): Promise<{ client: TLSSocket; session: Promise<Buffer> }> {
  const client = connect({ host: "127.0.0.1", port, ca: ca.certificatePem, ...options });
  const session = new Promise<Buffer>((resolve) => client.once("session", resolve));
  await once(client, "secureConnect");
  client.on("error", () => undefined);
  client.unref();
  return { client, session };
}

async function run(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "ignore"] });
  return await text(child.stdout);
}

function url(port: number): string {
  return `https://${NAME}:${port}/`;
}
