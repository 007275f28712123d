/** The jail of `run`: ordinary clients just work, and nothing but what policy allows leads out. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { SECRET } from "../support/gate.ts";
import { type JailSetup, ORDINARY_UID, python, runJail, setUpJail } from "../support/jail.ts";
import { valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4, PUBLIC_V6 } from "../support/private-internet.ts";
import { nowhere, waysOut } from "../support/ways-out.ts";

const CONFIG = {
  network: {
    allowlist: [
      { domain: "api.test", transform: { Authorization: `Bearer ${SECRET}` } },
      { domain: "tunnel.test" },
      { domain: "v6.test" },
      { domain: "inside.test" },
      { id: "db", domain: "db.test", ports: [5432], protocol: "tcp" },
      { domain: "odd.test", ports: [8081] },
    ],
    denylist: [{ domain: "denied.test" }],
  },
};
const CURL = ["curl", "-sS", "--max-time", "10"];

let internet: Internet;
let setup: JailSetup;
let secure: Origin;
let database: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  for (const name of ["api.test", "tunnel.test", "db.test", "odd.test"])
    internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("v6.test", { AAAA: [PUBLIC_V6[0]] });
  internet.dns.set("inside.test", { A: ["10.0.0.5"] });
  const names = ["api.test", "tunnel.test"];
  secure = await createOrigin(internet, { tls: names, bound: true });
  await createOrigin(internet);
  await createOrigin(internet, { tls: ["v6.test"], address: PUBLIC_V6[0] });
  database = await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => void socket.write("ready\n"),
  });
  packets = await watchPackets(internet);
  setup = setUpJail(internet, CONFIG);
});
after(() => internet.close());

describe("a listed host", () => {
  test("is reached by an ordinary user's curl, with the secret and without a proxy variable", async () => {
    const before = secure.requests.length;
    const program = `id -u; env | grep -i '_proxy=\\|^SECRET=' ; ${CURL.join(" ")} https://api.test/`;
    const ended = await runJail(internet, setup, ["sh", "-c", program], {
      env: { HTTPS_PROXY: "http://127.0.0.1:1", no_proxy: "*" },
    });
    assert.equal(ended.stdout, `${ORDINARY_UID}\nok`);
    assert.deepEqual([ended.stderr, ended.code], ["", 0]);
    const request = secure.requests[before];
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
    const record = ended.records.find(({ listener }) => listener === "jail");
    assert.deepEqual(
      [record?.["host"], record?.["verdict"], record?.["visibility"], record?.["injected"]],
      ["api.test", "allow", "request", ["Authorization"]],
    );
  });

  test("is a tunnel where nothing is needed from inside, in clear on port 80, and the same over IPv6", async () => {
    const pem = `${setup.directory}/root.pem`;
    const ended = await runJail(internet, setup, [
      "sh",
      "-c",
      [
        // Through a tunnel the origin's own certificate arrives.
        `${CURL.join(" ")} --cacert ${pem} https://tunnel.test/`,
        `${CURL.join(" ")} http://tunnel.test/`,
        `${CURL.join(" ")} -6 --cacert ${pem} https://tunnel.test/`,
        `${CURL.join(" ")} --cacert ${pem} https://v6.test/`,
      ].join(";"),
    ]);
    assert.deepEqual([ended.stdout, ended.stderr], ["okokokok", ""]);
    const jail = ended.records.filter(({ listener }) => listener === "jail");
    assert.deepEqual(
      jail.map(({ protocol }) => protocol),
      ["tls-tunnel", "http/1.1", "tls-tunnel", "tls-tunnel"],
    );
  });

  test("is reached at any address, since the name alone decides", async () => {
    const resolve = ["--resolve", "api.test:443:192.0.2.7"];
    const ended = await runJail(internet, setup, [...CURL, ...resolve, "https://api.test/"]);
    assert.equal(ended.stdout, "ok");
  });

  test("by a tcp rule passes bytes unseen, whoever speaks first, over IPv4 and IPv6", async () => {
    const before = database.connections.length;
    const program = `
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    address = socket.getaddrinfo("db.test", 5432, family, socket.SOCK_STREAM)[0][4]
    s = socket.socket(family); s.settimeout(10); s.connect(address)
    print(s.recv(99).decode().strip())
    s.sendall(b"query"); s.close()
`;
    const ended = await runJail(internet, setup, python(program));
    assert.deepEqual([ended.stdout, ended.stderr], ["ready\nready\n", ""]);
    await database.until("both queries", () =>
      database.connections.slice(before).every(({ received }) => received === "query"),
    );
    const record = ended.records.find(({ protocol }) => protocol === "tcp");
    assert.deepEqual([record?.["host"], record?.["rule"], record?.["port"]], ["db.test", "db", 5432]);
  });
});

/** Each is one question of an ordinary client; none may put a packet on the wire. */
const REFUSED = [
  ["https://unlisted.test/", 403, "no-rule-matched"],
  ["http://unlisted.test/", 403, "no-rule-matched"],
  ["https://denied.test/", 403, "rule-denies"],
  ["http://1.2.3.4/", 403, "no-name"],
  ["http://[2606:4700::1111]/", 403, "no-name"],
  ["http://127.0.0.1/", 403, "loopback"],
  ["http://[::1]/", 403, "loopback"],
  ["https://localhost/", 403, "loopback"],
  ["http://10.0.0.5/", 403, "address-not-public"],
  ["http://169.254.169.254/latest/meta-data/", 403, "address-not-public"],
  ["https://tunnel.test:8081/", 403, "no-rule-matched"],
  ["http://api.test/", 403, "plaintext-secret"],
  ["http://tunnel.test:443/", 403, "needs-inspection"],
] as const;

describe("a refused host", () => {
  test("is refused in words, in clear and inside TLS, and no packet leaves", async () => {
    await packets.take();
    const queries = internet.dns.queries.length;
    const program = REFUSED.map(([url]) => `${CURL.join(" ")} -w ' %{http_code}\\n' '${url}'`).join(";");
    const ended = await runJail(internet, setup, ["sh", "-c", program]);
    assert.equal(ended.stderr, "");
    const lines = ended.stdout.trim().split(/(?<=\d{3})\n/);
    const answers = lines.map((line) => {
      const [json = "", status = ""] = line.split(/\n (?=\d{3}$)/);
      const { error } = JSON.parse(json) as { error: { reason: string } };
      return [Number(status), error.reason];
    });
    assert.deepEqual(
      answers,
      REFUSED.map(([, status, reason]) => [status, reason]),
    );
    const jail = ended.records.filter(({ listener }) => listener === "jail");
    assert.deepEqual(
      jail.map(({ verdict, reason }) => [verdict, reason]),
      REFUSED.map(([, , reason]) => ["deny", reason]),
    );
    assert.deepEqual(await packets.take(), []);
    assert.equal(internet.dns.queries.length, queries);
  });

  test("whose name and address differ, or whose names differ, is 421", async () => {
    const program = [
      `${CURL.join(" ")} -o /dev/null -w '%{http_code} ' -H 'Host: tunnel.test' http://unlisted.test/`,
      `${CURL.join(" ")} -o /dev/null -w '%{http_code} ' -H 'Host: tunnel.test' https://api.test/`,
      `${CURL.join(" ")} -o /dev/null -w '%{http_code}' -H 'Host: tunnel.test:8081' http://tunnel.test/`,
    ].join(";");
    const ended = await runJail(internet, setup, ["sh", "-c", program]);
    assert.equal(ended.stdout, "421 421 421");
  });

  test("that resolves to an address of ours is refused in words though it was to be a tunnel", async () => {
    const ended = await runJail(internet, setup, [...CURL, "https://inside.test/"]);
    assert.match(ended.stdout, /"reason":"address-not-public"/);
    const jail = ended.records.filter(({ listener }) => listener === "jail");
    assert.deepEqual(
      jail.map(({ reason }) => reason),
      ["address-not-public"],
    );
  });
});

describe("a refusal", () => {
  test("is an alert or a reset where nobody reads words, and one record each", async () => {
    const program = `
import socket, ssl
def tls(address, name):
    context = ssl._create_unverified_context()
    context.check_hostname = False
    try: context.wrap_socket(socket.create_connection(address, 10), server_hostname=name)
    except ssl.SSLError as error: print(error.reason)
def raw(address, data):
    s = socket.create_connection(address, 10)
    s.sendall(data)
    try: print(s.recv(99))
    except ConnectionResetError: print("reset")
tls(("1.2.3.4", 443), None)
tls(("tunnel.test", 443), None)
tls(("127.0.0.1", 443), "tunnel.test")
raw(("tunnel.test", 443), b"SSH-2.0-x\\r\\n\\x00")
raw(("tunnel.test", 80), b"\\x00\\x01\\x02")
raw(("1.2.3.4", 5432), b"\\x00\\x00\\x00\\x08")
`;
    await packets.take();
    const ended = await runJail(internet, setup, python(program));
    const alert = "TLSV1_ALERT_ACCESS_DENIED\n";
    assert.deepEqual([ended.stdout, ended.stderr], [`${alert.repeat(3)}reset\nreset\nreset\n`, ""]);
    const jail = ended.records.filter(({ listener }) => listener === "jail");
    assert.deepEqual(
      jail.map(({ reason }) => reason),
      ["no-name", "no-name", "loopback", "needs-inspection", "needs-inspection", "no-name"],
    );
    assert.deepEqual(await packets.take(), []);
  });

  test("is recorded once although the client does not trust us, or asks for nothing", async () => {
    const program = [
      `${CURL.join(" ")} --cacert ${setup.directory}/root.pem https://unlisted.test/ 2>/dev/null`,
      "openssl s_client -connect unlisted.test:443 -servername unlisted.test </dev/null >/dev/null 2>&1",
    ].join(";");
    const ended = await runJail(internet, setup, ["sh", "-c", program]);
    const jail = ended.records.filter(({ listener }) => listener === "jail");
    assert.deepEqual(
      jail.map(({ reason, visibility }) => [reason, visibility]),
      [
        ["no-rule-matched", "destination"],
        ["no-rule-matched", "destination"],
      ],
    );
  });
});

/** What a client says first, with an extension more, and whose certificate comes back: TLS 1.2 shows it. */
const HIDDEN_NAME = `
import socket, ssl, struct
context = ssl._create_unverified_context(); context.maximum_version = ssl.TLSVersion.TLSv1_2
def first(extension):
    out = ssl.MemoryBIO(); tls = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="tunnel.test")
    try: tls.do_handshake()
    except ssl.SSLWantReadError: pass
    body = out.read()[9:]
    at = 34 + 1 + body[34]; at += 2 + struct.unpack("!H", body[at:at + 2])[0]; at += 1 + body[at]
    more = body[at + 2:] + extension
    body = body[:at] + struct.pack("!H", len(more)) + more
    message = b"\\x01" + struct.pack("!I", len(body))[1:] + body
    return b"\\x16\\x03\\x01" + struct.pack("!H", len(message)) + message
for extension in (b"", b"\\xfe\\x0d" + struct.pack("!H", 40) + bytes(40)):
    s = socket.create_connection(("tunnel.test", 443), 5); s.sendall(first(extension)); s.settimeout(5)
    got = b""
    while b"\\x16\\x03\\x03\\x00\\x04\\x0e" not in got and (piece := s.recv(9999)): got += piece
    print("the origin's" if b"Throw-away root" in got else "the gate's" if b"Sallyport" in got else got)
`;

describe("a name that is hidden (ECH)", () => {
  test("never leaves: what would be a tunnel is ended here, and the inner hello with it", async () => {
    const ended = await runJail(internet, setup, python(HIDDEN_NAME));
    assert.deepEqual([ended.stdout, ended.stderr], ["the origin's\nthe gate's\n", ""]);
  });
});

describe("everything else", () => {
  test("leads nowhere: other ports, UDP, the host's loopback and its abstract sockets", async () => {
    const host = await internet.gate.listen("127.0.0.1", 7_777);
    internet.onClose(() => host.close());
    const program = `
import socket
def tcp(host, port):
    try: socket.create_connection((host, port), 5); print("open", host, port)
    except OSError as error: print(error.errno)
def udp(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    try: s.connect((host, port)); s.send(b"x"); s.recv(9); print("answer", host, port)
    except OSError as error: print(error.errno)
for port in (22, 25, 853, 8080, 8443, 9464): tcp("api.test", port)
tcp("127.0.0.1", 7777); tcp("11.0.0.1", 7777); tcp("1.2.3.4", 8443); tcp("2606:4700::1111", 22)
for port in (443, 123, 3478, 5353, 5355, 137): udp("1.2.3.4", port)
udp("224.0.0.251", 5353); udp("2606:4700::1111", 443)
`;
    await packets.take();
    const ended = await runJail(internet, setup, python(program));
    assert.equal(ended.stderr, "");
    const numbers = ended.stdout.trim().split("\n");
    assert.equal(numbers.length, 18);
    // ECONNREFUSED at once; of multicast, EINVAL.
    assert.deepEqual(new Set(numbers), new Set(["111", "22"]), ended.stdout);
    assert.deepEqual(await packets.take(), []);
  });

  test("leads nowhere by any of many ports, of addresses near and far", async () => {
    await packets.take();
    const ended = await runJail(internet, setup, waysOut({ gate: "alive" }));
    assert.deepEqual([ended.stdout, ended.stderr], [nowhere({ gate: "alive" }), ""]);
    assert.deepEqual(await packets.take(), []);
  });

  test("is as before when the jail has ended: no file is left", async () => {
    const files = (): readonly string[] =>
      readdirSync(setup.directory, { recursive: true }).map(String).sort();
    await runJail(internet, setup, ["true"]);
    const before = files();
    await runJail(internet, setup, [...CURL, "https://api.test/"]);
    assert.deepEqual(files(), before);
    assert.deepEqual(
      before.filter((name) => name.startsWith("certs/")),
      ["certs/ca.key", "certs/ca.pem"],
    );
  });
});
