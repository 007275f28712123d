/** Several sandboxes on one bridge, and others on links of their own: kept apart, and each only ever itself. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Box } from "../support/box.ts";
import { boxAddress, createBox, createBridge, forward, shell } from "../support/box.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const NET = 90;
const [ONE, TWO] = [boxAddress(NET, 2), boxAddress(NET, 3)];
const [MAC_ONE, MAC_TWO] = ["02:00:00:00:00:21", "02:00:00:00:00:22"];
const LONE = boxAddress(91, 2);

let internet: Internet;
let gate: Gate;
let one: Box;
let two: Box;
let lone: Box;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  for (const name of ["one.test", "two.test", "lone.test"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { answer: ({ start }) => respond(start) });
  await forward(internet);
  await createBridge(internet, "br0", NET);
  one = await createBox(internet, { link: "port1", bridge: "br0", net: NET, host: 2, mac: MAC_ONE });
  two = await createBox(internet, { link: "port2", bridge: "br0", net: NET, host: 3, mac: MAC_TWO });
  lone = await createBox(internet, { link: "lone0", net: 91, host: 2, mac: "02:00:00:00:00:31" });
  packets = await watchPackets(internet);
  const only = (domain: string): object => ({ allowlist: [{ domain }] });
  gate = await startGate(internet, {
    listen: {
      admin: "127.0.0.1:9464",
      gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: ["br0", "lone*"] },
    },
    sandboxes: [
      { id: "one", source: [ONE.v4, ONE.v6], interface: "port1", mac: MAC_ONE, network: only("one.test") },
      { id: "two", source: [TWO.v4, TWO.v6], interface: "port2", network: only("two.test") },
      { id: "lone", source: [LONE.v4, LONE.v6], interface: "lone0", network: only("lone.test") },
    ],
  });
});
after(() => internet.close());

function get(box: Box, url: string, ...options: readonly string[]): ReturnType<Box["run"]> {
  return box.run(["curl", "-sS", "--max-time", "2", ...options, url]);
}

async function addressed(box: Box, address: string, task: () => Promise<void>): Promise<void> {
  await shell(box.namespace, [`ip addr add ${address}/24 dev e0`]);
  try {
    await task();
  } finally {
    await shell(box.namespace, [`ip addr del ${address}/24 dev e0`]);
  }
}

describe("sandboxes behind one gateway", () => {
  test("reach what is theirs, each under its own name", async () => {
    for (const [box, name] of [
      [one, "one"],
      [two, "two"],
      [lone, "lone"],
    ] as const) {
      const { stdout, stderr } = await get(box, `http://${name}.test/`);
      assert.equal(stdout, "GET / HTTP/1.1", stderr);
      assert.equal((await gate.record({ host: `${name}.test`, listener: "gateway" }))["sandbox"], name);
    }
    const other = await get(one, "http://two.test/");
    assert.equal(JSON.parse(other.stdout).error.reason, "no-rule-matched");
  });

  test("do not reach each other, on the bridge or across it", async () => {
    const servers = [one, two, lone].map(({ namespace }) =>
      namespace.spawn(["python3", "-m", "http.server", "7000", "--bind", "::"], { stdio: "ignore" }),
    );
    for (const [box, addresses] of [
      [one, [TWO, LONE]],
      [two, [ONE, LONE]],
      [lone, [ONE, TWO]],
    ] as const) {
      for (const { v4, v6 } of addresses) {
        for (const host of [v4, `[${v6}]`]) {
          const { code, stdout } = await get(box, `http://${host}:7000/`, "-f");
          assert.notEqual(code, 0, `${host}: ${stdout}`);
        }
        assert.notEqual((await box.run(["ping", "-c1", "-W1", v4])).code, 0);
      }
    }
    for (const server of servers) server.kill("SIGKILL");
  });

  test("cannot be each other: another's address at one's own port is dropped", async () => {
    for (const [box, address] of [
      [one, TWO.v4],
      [two, ONE.v4],
      [lone, ONE.v4],
      [one, LONE.v4],
    ] as const) {
      await addressed(box, address, async () => {
        const { code, stderr } = await get(box, `http://${PUBLIC_V4}/`, "--interface", address);
        assert.equal(code, 28, stderr);
      });
    }
    const seen = gate.records.filter(({ client, host }) => host === PUBLIC_V4 && client !== LONE.v4);
    assert.deepEqual(seen, []);
  });

  test("cannot be each other with the other's MAC address either", async () => {
    await shell(two.namespace, [`ip link set e0 address ${MAC_ONE}`]);
    await addressed(two, ONE.v4, async () => {
      assert.equal((await get(two, `http://${PUBLIC_V4}/`, "--interface", ONE.v4)).code, 28);
    });
    await shell(two.namespace, [`ip link set e0 address ${MAC_TWO}`]);
    const { stdout, stderr } = await get(one, "http://one.test/again");
    assert.equal(stdout, "GET /again HTTP/1.1", `the one that it belongs to still has it: ${stderr}`);
  });
});

describe("on the bridge, a sandbox", () => {
  test("cannot take another's place in the gate's list of neighbours", async () => {
    await two.run(["python3", "-c", POISON, MAC_TWO, ONE.v4]);
    await two.run(["python3", "-c", POISON, MAC_TWO, boxAddress(NET, 1).v4]);
    const neighbours = await shell(internet.gate, ["ip neigh show dev br0"]);
    assert.match(neighbours, new RegExp(`${ONE.v4.replaceAll(".", "\\.")} lladdr ${MAC_ONE}`));
    assert.doesNotMatch(neighbours, new RegExp(`${ONE.v4.replaceAll(".", "\\.")} lladdr ${MAC_TWO}`));
    assert.equal((await get(one, "http://one.test/third")).stdout, "GET /third HTTP/1.1");
  });

  test("that nobody named is reset and recorded", async () => {
    await addressed(lone, "10.91.0.9", async () => {
      await packets.take();
      const { code } = await get(lone, `http://${PUBLIC_V4}/`, "--interface", "10.91.0.9");
      assert.ok(code === 7 || code === 56, `${code}`);
      const record = await gate.record({ reason: "identity-unknown" });
      assert.deepEqual(
        [record["listener"], record["client"], record["sandbox"], record["host"], record["port"]],
        ["gateway", "10.91.0.9", null, PUBLIC_V4, 80],
      );
      assert.deepEqual(await packets.take(), []);
    });
  });
});

/** Gratuitous ARP: `argv[2]` is at `argv[1]`, as request and as reply. */
const POISON = `
import socket, struct, sys
mac = bytes.fromhex(sys.argv[1].replace(":", "")); ip = socket.inet_aton(sys.argv[2])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(("e0", 0))
for op in (1, 2):
    s.send(b"\\xff" * 6 + mac + struct.pack("!HHHBBH", 0x0806, 1, 0x0800, 6, 4, op) + mac + ip + b"\\xff" * 6 + ip)
`;
