/** The DNS front of a jail: every name is answered from here, no query leaves, and no packet does harm. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Ended, type JailSetup, python, runJail, setUpJail } from "../support/jail.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";

const CONFIG = { network: { allowlist: [{ domain: "listed.test" }, { domain: "*.exfil-allowed.test" }] } };
/** A stub resolver of our own: a question as bytes, and what an answer holds. */
const PRELUDE = `
import socket, struct
def question(name, kind, flags=0x0100, edns=b""):
    labels = b"".join(bytes([len(l)]) + l for l in name.encode().split(b".") if l) + b"\\0"
    return struct.pack("!6H", 0x1234, flags, 1, 0, 0, 1 if edns else 0) + labels + struct.pack("!2H", kind, 1) + edns
OPT = b"\\0" + struct.pack("!HHIH", 41, 4096, 0, 0)
def udp(message, server="198.18.0.1"):
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1); s.connect((server, 53)); s.send(message)
    try: return s.recv(4096)
    except TimeoutError: return b""
def tcp(data, read=65536):
    s = socket.create_connection(("9.9.9.9", 53), 5); s.settimeout(15); s.sendall(data)
    got = b""
    try:
        while len(got) < read:
            piece = s.recv(read)
            if not piece: break
            got += piece
    except (ConnectionResetError, TimeoutError): pass
    return got
def show(answer): print(answer[3] & 15, struct.unpack("!H", answer[6:8])[0], flush=True)
`;

let internet: Internet;
let setup: JailSetup;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  packets = await watchPackets(internet);
  setup = setUpJail(internet, CONFIG);
});
after(() => internet.close());

async function ask(program: string): Promise<Ended> {
  const ended = await runJail(internet, setup, python(PRELUDE + program));
  assert.equal(ended.stderr, "");
  return ended;
}

describe("a lookup", () => {
  test("of any name is answered at any server's address, over UDP and TCP, and never sent on", async () => {
    await packets.take();
    const queries = internet.dns.queries.length;
    const ended = await ask(`
import random
for name in ["listed.test", "unlisted.test", "single"] + ["%032x.exfil.test" % random.getrandbits(128) for _ in range(50)]:
    show(udp(question(name, 1))); show(udp(question(name, 28), "8.8.8.8"))
for data in ("00" * 20, "ff" * 20): show(udp(question(data + ".exfil-allowed.test", 1, edns=OPT), "127.0.0.1"))
q = question("listed.test", 1)
show(tcp(struct.pack("!H", len(q)) + q, 2)[0:0] or tcp(struct.pack("!H", len(q)) + q, 2 + len(q) + 16)[2:])
for kind in (5, 10, 16, 255): show(udp(question("aaaa.exfil.test", kind)))
`);
    const lines = ended.stdout.trim().split("\n");
    assert.deepEqual(lines, [
      ...Array.from({ length: 109 }, () => "0 1"),
      ...Array.from({ length: 4 }, () => "5 0"),
    ]);
    assert.deepEqual(await packets.take(), []);
    assert.equal(internet.dns.queries.length, queries);
    const listed = ended.records.filter(({ host }) => host === "listed.test");
    assert.deepEqual(
      new Set(listed.map(({ verdict, reason }) => `${verdict} ${reason}`)),
      new Set(["allow rule-allows"]),
    );
    const [exfil] = ended.records.filter(({ host }) => String(host).endsWith("exfil.test"));
    assert.deepEqual(
      [exfil?.["listener"], exfil?.["protocol"], exfil?.["method"], exfil?.["verdict"], exfil?.["port"]],
      ["dns", "dns", "A", "deny", null],
    );
  });

  test("keeps localhost the sandbox's own, and gives HTTPS and SVCB no data, and others no answer", async () => {
    const { stdout } = await ask(`
print(socket.inet_ntoa(udp(question("localhost", 1))[-4:]), socket.inet_ntop(10, udp(question("a.localhost", 28))[-16:]))
for kind in (65, 64, 16, 15, 33, 2, 6, 12, 255): show(udp(question("listed.test", kind)))
show(udp(question("listed.test", 1).replace(b"\\0\\1\\0\\1", b"\\0\\1\\0\\3")))
show(udp(question("1.2.3.4", 1)))
`);
    const expected = ["127.0.0.1 ::1", "0 0", "0 0", ...Array.from({ length: 8 }, () => "5 0"), "3 0", ""];
    assert.deepEqual(stdout.split("\n"), expected);
  });

  test("gives one name one address, in both families, and the way back", async () => {
    const { stdout } = await ask(`
a = socket.getaddrinfo("listed.test", 443, proto=6)
print(len(a), a == socket.getaddrinfo("listed.test", 443, proto=6), a[0][4][0] != socket.getaddrinfo("b.test", 443, proto=6)[0][4][0])
for family, _, _, _, address in a: print(socket.getnameinfo(address, socket.NI_NUMERICSERV)[0])
try: print(socket.gethostbyaddr("198.19.255.1"))
except OSError as error: print("none")
`);
    assert.equal(stdout, "2 True True\nlisted.test\nlisted.test\nnone\n");
  });
});

describe("what is no query", () => {
  test("is answered as malformed, or not at all, and the front goes on", async () => {
    const { stdout } = await ask(`
q = question("listed.test", 1)
show(udp(q + b"x")); show(udp(q[:-2])); show(udp(q[:4] + b"\\0\\2" + q[6:])); show(udp(question("listed.test", 1, 0x2100)))
show(udp(q[:12] + b"\\xc0\\x0c" + q[-4:])); show(udp(question("listed.test", 1, edns=OPT + OPT)))
print(len(udp(q[:11])), len(udp(b"")), len(udp(question("listed.test", 1, 0x8100))), len(udp(b"x" * 5000)))
show(udp(q))
`);
    const expected = ["1 0", "1 0", "1 0", "4 0", "1 0", "1 0", "0 0 0 0", "0 1", ""];
    assert.deepEqual(stdout.split("\n"), expected);
  });

  test("over TCP ends the connection where it is of no length, or too long, or too much", async () => {
    const { stdout } = await ask(`
q = question("listed.test", 1); framed = struct.pack("!H", len(q)) + q
print(len(tcp(b"\\0\\0")), len(tcp(b"\\xff\\xff" + b"x" * 100)))
import time
start = time.monotonic()
got = tcp(framed * 10000, 10 ** 9)
count = len(got) // (len(q) + 18)
print(100 < count < min(10000, 2000 + 1000 * (time.monotonic() - start)))
time.sleep(1.2)
show(udp(q))
`);
    assert.equal(stdout, "0 0\nTrue\n0 1\n");
  });
});
