/** The door itself, with the kernel's word on each connection given by the test. */
import assert from "node:assert/strict";
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { OriginalDestination } from "../src/accept/original-destination.ts";
import { parseIpAddress, parseRange } from "../src/base/ip.ts";
import { loadConfigText } from "../src/config/load.ts";
import { compilePolicy } from "../src/decide/policy.ts";
import { createGatewayDoor, type GatewayDoor } from "../src/gateway-door.ts";
import type { IpAddress } from "../src/model/exchange.ts";
import { DEFAULT_LIMITS } from "../src/model/limits.ts";
import type { AddressRange, SandboxSource } from "../src/model/policy.ts";
import type { ExchangeRecord, Recorder } from "../src/model/record.ts";
import type { World } from "../src/world.ts";

const records: ExchangeRecord[] = [];
const said: { original: OriginalDestination | undefined; via: string | undefined } = {
  original: undefined,
  via: undefined,
};
let sandboxes: readonly SandboxSource[] = [];
let tcp = 0;
let dns = 0;
let door: GatewayDoor;

before(async () => {
  [tcp, dns] = [await freePort(), await freePort()];
  const gateway = {
    address: { host: "127.0.0.1", port: tcp },
    dns: { host: "127.0.0.1", port: dns },
    interfaces: ["sbx0"],
    firewall: "none",
  } as const;
  const redirections = { originalOf: () => said.original, interfaceOf: () => said.via };
  door = createGatewayDoor({ gateway, redirections, now: () => 0 }, world());
  await door.listen();
});
after(() => door.close());
beforeEach(() => {
  records.length = 0;
  sandboxes = [];
});

const CONFIG = loadConfigText("version: 1\nnetwork: { allowlist: [] }\n", "/x.yaml", 1);
assert.ok(CONFIG.ok);
const POLICY = compilePolicy(CONFIG.config.policy);

/** As much of a world as is needed where nobody gets in. */
function world(): World {
  const recorder = { exchange: (record: ExchangeRecord) => void records.push(record) } as unknown as Recorder;
  const deadlines = { now: () => 0, add: () => {}, remove: () => {} };
  const inForce = (): object => ({ sandboxes, digest: "0123456789ab", policy: POLICY });
  return { recorder, deadlines, inForce, limits: DEFAULT_LIMITS } as unknown as World;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** How a connection ends: `ECONNRESET` is what is expected. */
async function endOf(port: number): Promise<string> {
  const socket: Socket = connect(port, "127.0.0.1");
  try {
    socket.write("GET / HTTP/1.1\r\n\r\n");
    await once(socket, "close");
    return "closed";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "?";
  }
}

const ELSEWHERE = { address: parseIpAddress("192.0.2.1") as IpAddress, port: 443 };

for (const [name, original, via] of [
  ["was not redirected", undefined, "sbx0"],
  ["came by another interface", ELSEWHERE, "eth0"],
  ["came by nobody knows which", ELSEWHERE, undefined],
] as const) {
  test(`createGatewayDoor: what ${name} is reset and recorded, on both ports`, async () => {
    Object.assign(said, { original, via });
    for (const port of [tcp, dns]) assert.equal(await endOf(port), "ECONNRESET");
    assert.equal(records.length, 2);
    for (const record of records) {
      assert.equal(record.listener, "gateway");
      assert.equal(record.reason, "identity-unknown");
      assert.equal(record.client, "127.0.0.1");
      assert.equal(record.policy, "0123456789ab");
    }
  });
}

test("createGatewayDoor: what came for another port than 53 is no lookup", async () => {
  Object.assign(said, { original: ELSEWHERE, via: "sbx0" });
  assert.equal(await endOf(dns), "ECONNRESET");
});

test("createGatewayDoor: a datagram of nobody in particular gets no answer", async () => {
  const source = [parseRange("127.0.0.2") as AddressRange];
  sandboxes = [{ id: "a", source, token: undefined, network: { kind: "disabled" } }];
  const [stranger, known] = await Promise.all([asker("127.0.0.1"), asker("127.0.0.2")]);
  stranger.on("message", () => assert.fail("The stranger was answered"));
  const answered = once(known, "message");
  for (const socket of [stranger, known]) {
    await new Promise((resolve) => socket.send(QUERY, dns, "127.0.0.1", resolve));
  }
  // They are read in order, so the stranger's was read before this answer was made.
  const [answer] = (await answered) as [Buffer];
  assert.deepEqual(answer.subarray(-4, -1), Buffer.from([198, 18, 1]));
  await setImmediate();
  assert.deepEqual(
    records.map(({ listener, sandbox, host }) => [listener, sandbox, host]),
    [["dns", "a", "api.test"]],
  );
  for (const socket of [stranger, known]) socket.close();
});

/** `api.test`, A. */
const QUERY = Buffer.from("00010100000100000000000003617069047465737400" + "00010001", "hex");

async function asker(address: string): Promise<Datagrams> {
  const socket = createSocket("udp4").bind(0, address);
  await once(socket, "listening");
  return socket;
}

test("createGatewayDoor: a port that is taken keeps it from opening", async () => {
  const taken = {
    address: { host: "127.0.0.1", port: await freePort() },
    dns: { host: "127.0.0.1", port: dns },
    interfaces: [],
    firewall: "none",
  } as const;
  const redirections = { originalOf: () => undefined, interfaceOf: () => undefined };
  const second = createGatewayDoor({ gateway: taken, redirections, now: () => 0 }, world());
  await assert.rejects(
    second.listen(),
    /Cannot listen on 127\.0\.0\.1:\d+ \(listen\.gateway\.\w+\): something else listens there/,
  );
  second.close();
});
