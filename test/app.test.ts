import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { listen } from "../src/accept/listener.ts";
import { createGate } from "../src/app.ts";
import { loadConfigText } from "../src/config/load.ts";
import type { Gate } from "../src/gate.ts";
import type { Config } from "../src/model/config.ts";
import { openCa } from "../src/pki/ca.ts";
import { eventually, listenTo, type Peer } from "./support/loopback.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-app-"));
after(() => rmSync(dir, { recursive: true }));
const ca = openCa(join(dir, "certs"));
const GET = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
const DENY = "network: { allowlist: [] }";
const RECORDS = join(dir, "records.jsonl");

test("createGate refuses by its config, records and counts it, and drains", async (context) => {
  const { gate, open } = await start(context, DENY);
  const client = await open();
  client.send(GET);
  assert.equal(await client.ended, "end");
  assert.match(client.text, /^HTTP\/1\.1 403 .*no-rule-matched/s);
  client.socket.destroy();
  const metrics = JSON.stringify(await gate.metrics());
  assert.match(metrics, /sallyport_exchanges_total/);
  await gate.drain();
  const records = readFileSync(RECORDS, "utf8").trim().split("\n");
  const { reason, session, seq, policy } = JSON.parse(records.at(-1) ?? "");
  assert.deepEqual([reason, session, seq], ["no-rule-matched", "a-session", 1]);
  assert.match(policy, /^[0-9a-f]{12}$/);
  assert.equal(gate.listener.listening, false);
});

test("apply puts a config in force for connections that are open already", async (context) => {
  const { gate, open } = await start(context, DENY);
  const client = await open();
  client.send("GET http://a");
  gate.apply(config("network: disabled", 2));
  client.send(GET.slice("GET http://a".length));
  assert.equal(await client.ended, "end");
  assert.match(client.text, /network-disabled/);
});

test("apply takes up nothing of a config that cannot be, and says so", async (context) => {
  const { gate, open } = await start(context, DENY);
  const missing = { ...config("network: disabled", 2).upstream, caFile: join(dir, "absent.pem") };
  assert.throws(() => gate.apply({ ...config("network: disabled", 2), upstream: missing }), {
    code: "E_CONFIG",
  });
  const client = await open();
  client.send(GET);
  await client.ended;
  assert.match(client.text, /no-rule-matched/);
});

test("state and redact know the secrets of the config in force", async (context) => {
  const entry = (name: string) =>
    `network: { allowlist: [{ domain: a.example, transform: { Authorization: "Bearer \${env:${name}}" } }] }`;
  const { gate } = await start(context, entry("TOKEN"), { TOKEN: "correct-horse-battery" });
  assert.deepEqual(gate.state(), { secretsUnavailable: [], recordsDropped: 0 });
  assert.doesNotMatch(gate.redact("it is correct-horse-battery"), /horse/);
  gate.apply(config(entry("ABSENT"), 2));
  assert.equal(gate.state().secretsUnavailable.length, 1);
  assert.doesNotMatch(
    gate.redact("it was correct-horse-battery"),
    /horse/,
    "exchanges under way may still use it",
  );
});

test("a config that cannot be taken up leaves the secrets in force redacted, however long", async (context) => {
  const secret = "correct-horse-battery";
  const text = `network: { allowlist: [{ domain: a.example, transform: { Authorization: "\${env:TOKEN}" } }] }`;
  const { gate } = await start(context, text, { TOKEN: secret });
  const other = config(DENY, 2);
  const upstream = { ...other.upstream, caFile: join(dir, "absent.pem") };
  assert.throws(() => gate.apply({ ...other, upstream }), { code: "E_CONFIG" });
  const later = performance.now() + 3_600_000;
  const clock = context.mock.method(performance, "now", () => later);
  const redacted = gate.redact(`it is ${secret}`);
  clock.mock.restore();
  assert.doesNotMatch(redacted, /horse/);
});

test("drain ends idle connections, waits for busy ones, and cuts them when time is up", async (context) => {
  const { gate, open } = await start(context, `${DENY}\nlimits: { drain_timeout: 300ms }`);
  const idle = await open();
  const busy = await open();
  busy.send("GET http://a.example/ HT");
  await eventually(() => busy.socket.writableLength === 0);
  const drained = gate.drain();
  assert.equal(await idle.ended, "end");
  await drained;
  await busy.ended;
});

async function start(context: TestContext, text: string, env: Readonly<Record<string, string>> = {}) {
  const gate: Gate = createGate({
    config: config(text, 1),
    ca,
    ticketSecret: randomBytes(32),
    env,
    version: "0.0.0",
    session: "a-session",
  });
  await listen(gate.listener, { host: "127.0.0.1", port: 0 }, "listen.proxy");
  const sockets: Socket[] = [];
  context.after(async () => {
    for (const socket of sockets) socket.destroy();
    await gate.drain();
  });
  const { port } = gate.listener.address() as AddressInfo;
  async function open(): Promise<Peer> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    sockets.push(socket);
    await new Promise((resolve) => socket.once("connect", resolve));
    return listenTo(socket);
  }
  return { gate, open };
}

function config(text: string, generation: number): Config {
  const whole = `version: 1\nrecords: { file: ${RECORDS} }\n${text}\n`;
  const loaded = loadConfigText(whole, join(dir, "sallyport.yaml"), generation);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  return loaded.config;
}
