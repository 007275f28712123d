/** What leaves goes by a parent proxy: a real Squid, that asks for credentials and logs what it was asked for. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { fileURLToPath } from "node:url";
import { askInside, askPlain, head, inside } from "../support/ask.ts";
import { fromEnv, type Gate, type GateConfig, SECRET, startGate } from "../support/gate.ts";
import { openH2 } from "../support/h2-client.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import { type Message, oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import { createOrigin, type Origin, respond } from "../support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../support/private-internet.ts";
import { run } from "../support/programs.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";
import { CREDENTIALS, FORBIDDEN, SQUID, SQUID_PORT, type Squid, startSquid } from "../support/squid.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const HOST = "api.example.com";
const TUNNEL = "tunnel.example.com";
const DIRECT = "direct.example.com";
const REFUSED = "refused.example.com";
const H2 = "h2.example.com";
const DATABASE = "db.example.com";
const PARENT = "parent.example.com";
const ALIAS = "alias.example.com";
const H2_ADDRESS = "11.0.0.12";
const GARBAGE = "11.0.0.81";
const SECURE = "11.0.0.82";
const WORDS = /words-of-the-parent|squid/i;

let internet: Internet;
let squid: Squid;
let gate: Gate;
let origin: Origin;
let settled = 0;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, TUNNEL, DIRECT, DATABASE]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(H2, { A: [H2_ADDRESS] });
  internet.dns.set(REFUSED, { A: [FORBIDDEN] });
  for (const name of [PARENT, ALIAS]) internet.dns.set(name, { A: [SQUID] });
  internet.dns.set("secure.example.com", { A: [SECURE] });
  squid = await startSquid(internet);
  const answer = (request: Message) => accepted(request) ?? respond(request.start);
  origin = await createOrigin(internet, { tls: [HOST, TUNNEL, DIRECT], bound: true, answer });
  await createOrigin(internet, { answer });
  await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => {
      socket.write("server speaks first\n");
      socket.on("data", (bytes: Buffer) => void socket.write(`echo ${bytes}`));
    },
  });
  await createH2Origin(internet, {
    address: H2_ADDRESS,
    names: [H2],
    serve: (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("over h2");
    },
  });
  await createOrigin(internet, {
    address: GARBAGE,
    port: SQUID_PORT,
    serve: ({ socket }) => void socket.write("220 words-of-the-parent ESMTP\r\n\r\n"),
  });
  await secureDoor();
  gate = await startGate(internet, configWith({}), {
    env: { PARENT_AUTH: CREDENTIALS, WRONG: "gate:wrong" },
  });
});
after(() => internet.close());

function configWith(proxy: Readonly<Record<string, unknown>>): GateConfig {
  return {
    network: {
      allowlist: [
        { domain: HOST, transform: { Authorization: SECRET } },
        ...[TUNNEL, DIRECT, REFUSED].map((domain) => ({ domain })),
        { domain: H2, intercept: "always" },
        { domain: DATABASE, ports: [5432], protocol: "tcp" },
        ...[PARENT, ALIAS, SQUID].map((domain) => ({ domain, ports: [SQUID_PORT] })),
      ],
    },
    upstream: {
      proxy: {
        url: `http://${PARENT}:${SQUID_PORT}`,
        auth: fromEnv("PARENT_AUTH"),
        no_proxy: [DIRECT],
        ...proxy,
      },
    },
  };
}

/** TLS in front of the same Squid. */
async function secureDoor(): Promise<void> {
  const listener = await internet.net.listen(SECURE, 3129);
  listener.unref();
  const { certPem, keyPem } = internet.authority.issue({ names: ["secure.example.com"] });
  const server = createTlsServer({ cert: certPem, key: keyPem }, async (socket) => {
    socket.on("error", () => undefined);
    const far = await internet.net.connect(SQUID, SQUID_PORT);
    far.on("error", () => undefined);
    socket.pipe(far).pipe(socket);
  });
  server.on("tlsClientError", () => undefined);
  listener.on("connection", (socket: Socket) => void server.emit("connection", socket));
}

/** The 101 to a WebSocket's request. */
function accepted(request: Message): string | undefined {
  const key = oneValue(request, "sec-websocket-key");
  if (key === undefined) return undefined;
  const digest = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const fields = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${digest}`];
  return head("HTTP/1.1 101 Switching Protocols", ...fields);
}

/** Squid logs a tunnel once it has ended: with another policy, idle connections end. */
async function settle(): Promise<void> {
  settled += 1;
  await gate.reload(configWith({ no_proxy: [DIRECT, `${settled}.example.net`] }));
}

function plain(host: string, port = 80): Promise<Message> {
  const authority = port === 80 ? host : `${host}:${port}`;
  return askPlain(internet, head(`GET http://${authority}/ HTTP/1.1`, `Host: ${authority}`));
}

describe("a parent proxy, where names are resolved here,", () => {
  test("is asked for the vetted address, with our credentials, and the secret passes it unseen", async () => {
    const answer = await askInside(internet, gate, HOST);
    assert.equal(answer.body, "GET / HTTP/1.1");
    assert.deepEqual(valuesOf(origin.requests.at(-1) as Message, "authorization"), [internet.canary.secret]);
    assert.deepEqual(valuesOf(origin.requests.at(-1) as Message, "proxy-authorization"), []);
    const wire = await dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem });
    assert.equal((await wire.send(head("GET /t HTTP/1.1", `Host: ${TUNNEL}`))).body, "GET /t HTTP/1.1");
    wire.destroy();
    assert.equal((await plain(TUNNEL)).body, "GET / HTTP/1.1");
    await settle();
    await squid.until((line) => line === `CONNECT ${PUBLIC_V4}:443 gate 200`);
    await squid.until((line) => line === `CONNECT ${PUBLIC_V4}:80 gate 200`);
    assert.doesNotMatch(squid.lines().join("\n"), /example\.com/);
  });

  test("passes HTTP/2, WebSocket and tcp", async () => {
    const client = await openH2(internet, gate, H2);
    assert.equal((await client.ask([":path", "/"])).body, "over h2");
    const ws = await inside(internet, gate, HOST);
    const key = `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`;
    const lines = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", key];
    assert.equal(statusOf(await ws.send(head("GET /chat HTTP/1.1", `Host: ${HOST}`, ...lines))), 101);
    ws.destroy();
    const tcp = await dial(internet);
    const asked = head(`CONNECT ${DATABASE}:5432 HTTP/1.1`, `Host: ${DATABASE}:5432`);
    assert.equal(statusOf(await tcp.send(asked, { connect: true })), 200);
    await tcp.until("the server's words", (text) => text === "server speaks first\n");
    tcp.write("hello");
    await tcp.until("the echo", (text) => text.endsWith("echo hello"));
    tcp.destroy();
    await squid.until((line) => line.startsWith(`CONNECT ${PUBLIC_V4}:5432 gate`));
  });

  test("is not asked for what no_proxy lists", async () => {
    await settle();
    const logged = squid.lines().filter((line) => line.includes(":80 ")).length;
    assert.equal((await plain(DIRECT)).body, "GET / HTTP/1.1");
    await settle();
    // A marker behind it: whatever was asked for before is logged by then.
    await plain(REFUSED);
    await squid.until((line) => line === `CONNECT ${FORBIDDEN}:80 gate 403`);
    const now = squid.lines().filter((line) => line.includes(`${PUBLIC_V4}:80 `)).length;
    assert.equal(now, logged);
  });

  test("that refuses is a 502 without its words", async () => {
    const answer = await plain(REFUSED);
    assertFailed(answer, 502, "E_CONNECT");
    assert.doesNotMatch(answer.head + answer.body, WORDS);
    await squid.until((line) => line === `CONNECT ${FORBIDDEN}:80 gate 403`);
  });

  test("is no destination for a sandbox, by its name, another one or its address", async () => {
    for (const host of [PARENT, ALIAS, SQUID]) {
      assertRefused(await plain(host, SQUID_PORT), { status: 403, reason: "address-not-public" });
    }
  });
});

describe("a parent proxy", () => {
  test("that resolves names is asked for the name", async () => {
    await gate.reload(configWith({ resolve: "parent" }));
    assert.equal((await askInside(internet, gate, HOST)).body, "GET / HTTP/1.1");
    assert.equal((await plain(TUNNEL)).body, "GET / HTTP/1.1");
    await gate.reload(configWith({}));
    await squid.until((line) => line === `CONNECT ${HOST}:443 gate 200`);
    await squid.until((line) => line === `CONNECT ${TUNNEL}:80 gate 200`);
  });

  test("makes explain say what enforcement does", async () => {
    const { network, ...rest } = configWith({ resolve: "parent" });
    const { allowlist } = network as { allowlist: readonly object[] };
    await gate.reload({ ...rest, network: { allowlist: [...allowlist, { domain: "intranet" }] } });
    for (const host of [TUNNEL, DIRECT, "intranet", "localhost", "other.example.com"]) {
      const answer = await plain(host);
      const command = [
        process.execPath,
        MAIN,
        "explain",
        `http://${host}/`,
        "--json",
        "--config",
        gate.configFile,
      ];
      const env = { NODE_NO_WARNINGS: "1", PARENT_AUTH: CREDENTIALS };
      const { stdout } = await run(internet, command, { env });
      const { verdict, reason } = JSON.parse(stdout) as Record<string, string>;
      const enforced = oneValue(answer, "x-sallyport-reason") ?? "rule-allows";
      assert.deepEqual(
        [host, reason, verdict],
        [host, enforced, statusOf(answer) === 403 ? "deny" : "allow"],
      );
    }
  });

  test("behind TLS is spoken to over TLS, and only with its own certificate", async () => {
    await gate.reload(configWith({ url: "https://secure.example.com:3129" }));
    assert.equal((await plain(TUNNEL)).body, "GET / HTTP/1.1");
    assert.equal((await askInside(internet, gate, HOST)).body, "GET / HTTP/1.1");
    await gate.reload(configWith({ url: `https://${SECURE}:3129` }));
    assertFailed(await plain(TUNNEL), 502, "E_UPSTREAM_TLS");
  });
});

describe("a parent proxy that does not serve us", () => {
  test("that wants other credentials is a 502 without its words", async () => {
    for (const auth of [fromEnv("WRONG"), null]) {
      const { upstream, ...rest } = configWith({});
      const { auth: _, ...proxy } = (upstream as { proxy: Record<string, unknown> }).proxy;
      await gate.reload({ ...rest, upstream: { proxy: auth === null ? proxy : { ...proxy, auth } } });
      const answer = await plain(TUNNEL);
      assertFailed(answer, 502, "E_CONNECT");
      assert.doesNotMatch(answer.head + answer.body, WORDS);
    }
  });

  test("whose credentials cannot be had is asked for nothing, and what goes past it goes on", async () => {
    await gate.reload(configWith({ auth: fromEnv("NOWHERE") }));
    assertRefused(await plain(TUNNEL), { status: 403, reason: "secret-unavailable", rule: TUNNEL });
    assert.equal((await plain(DIRECT)).body, "GET / HTTP/1.1");
  });

  test("that speaks no HTTP is a 502 without its words", async () => {
    await gate.reload(configWith({ url: `http://${GARBAGE}:${SQUID_PORT}` }));
    const answer = await plain(TUNNEL);
    assertFailed(answer, 502, "E_UPSTREAM_PROTOCOL");
    assert.doesNotMatch(answer.head + answer.body, WORDS);
  });
});
