/** Names that lead where nobody may go: the address is judged, and what was judged is what is dialled. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askConnect, askPlain, head, inside } from "../support/ask.ts";
import type { Zone } from "../support/dns-server.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import {
  createInternet,
  DNS_V4,
  GATE_V4,
  GATE_V6,
  PUBLIC_V4,
  PUBLIC_V6,
} from "../support/private-internet.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";
import { dialThrough } from "../support/wire-client.ts";

const PRIVATE_V4 = "10.20.0.5";
const CONFIG = {
  network: {
    allowlist: [
      { domain: "inspected.example.com", intercept: "always" },
      { domain: "secret.example.com", transform: { Authorization: SECRET } },
      { domain: "private.example.com", intercept: "always" },
      { domain: "*.corp.example.com", private: true },
      { domain: "10.20.0.6" },
      { domain: PUBLIC_V4 },
      { domain: "*.example.com" },
      { domain: "*" },
    ],
  },
  limits: { dns_min_ttl: 0 },
  upstream: {
    allow_ranges: ["10.20.0.0/16", "203.0.113.0/24"],
    deny_ranges: ["10.20.9.0/24", "11.0.66.0/24"],
    dns: { servers: [DNS_V4], hosts: { "fixed.example.com": ["10.99.0.1"] } },
  },
};

const REFUSED: readonly (readonly [what: string, zone: Zone, reason: string])[] = [
  ["loopback", { A: ["127.0.0.1"] }, "loopback"],
  ["loopback, elsewhere in its block", { A: ["127.8.8.8"] }, "loopback"],
  ["IPv6 loopback", { AAAA: ["::1"] }, "loopback"],
  ["IPv4-mapped loopback", { AAAA: ["::ffff:127.0.0.1"] }, "loopback"],
  ["the unspecified address", { A: ["0.0.0.0"] }, "address-not-public"],
  ["a private address", { A: ["192.168.1.1"] }, "address-not-public"],
  ["a private address that is opened for others", { A: [PRIVATE_V4] }, "address-not-public"],
  ["carrier-grade NAT", { A: ["100.64.0.1"] }, "address-not-public"],
  ["link-local", { A: ["169.254.10.10"] }, "address-not-public"],
  ["cloud metadata", { A: ["169.254.169.254"] }, "address-not-public"],
  ["cloud metadata of Azure, a public address", { A: ["168.63.129.16"] }, "address-not-public"],
  ["cloud metadata over IPv6", { AAAA: ["fd00:ec2::254"] }, "address-not-public"],
  ["a unique local address", { AAAA: ["fd12::1"] }, "address-not-public"],
  ["NAT64 of a private address", { AAAA: ["64:ff9b::a9fe:a9fe"] }, "address-not-public"],
  ["6to4 of loopback", { AAAA: ["2002:7f00:1::"] }, "address-not-public"],
  ["multicast", { A: ["224.0.0.1"] }, "address-not-public"],
  ["documentation", { A: ["198.51.100.7"] }, "address-not-public"],
  ["the gate's own address, a public one", { A: [GATE_V4] }, "address-not-public"],
  ["the gate's own IPv6 address", { AAAA: [GATE_V6] }, "address-not-public"],
  ["a denied range", { A: ["11.0.66.6"] }, "address-denied"],
  ["private through a CNAME", { cname: "internal.example.org" }, "address-not-public"],
];

let internet: Internet;
let gate: Gate;
let packets: Packets;
let origins: readonly Origin[];

before(async () => {
  internet = await createInternet();
  internet.dns.set("internal.example.org", { A: ["192.168.7.7"] });
  for (const [index, [, zone]] of REFUSED.entries()) internet.dns.set(`refused${index}.example.com`, zone);
  const tls = ["*.example.com", "*.corp.example.com"];
  // Closes after each answer, so that every request is a new dial.
  await createOrigin(internet, { answer: () => respond("once", "200 OK", ["Connection: close"]) });
  origins = [
    await createOrigin(internet, { tls }),
    await createOrigin(internet, { tls, address: PRIVATE_V4 }),
    await createOrigin(internet, { tls, address: "10.20.9.9" }),
    await createOrigin(internet, { tls, address: PUBLIC_V6[0] }),
  ];
  packets = await watchPackets(internet);
  gate = await startGate(internet, CONFIG);
});
after(() => internet.close());

function withoutDns(seen: readonly string[]): readonly string[] {
  return seen.filter((line) => !line.includes(` > ${DNS_V4}.53 `));
}

describe("a name that resolves to", () => {
  for (const [index, [what, , reason]] of REFUSED.entries()) {
    test(`${what} is ${reason} in a tunnel, with a 403 to the CONNECT, and over plain HTTP`, async () => {
      const host = `refused${index}.example.com`;
      await packets.take();
      const expected = { status: 403, reason, host };
      assertRefused(await askConnect(internet, `${host}:443`), expected);
      assertRefused(
        await askPlain(internet, head(`GET http://${host}/ HTTP/1.1`, `Host: ${host}`)),
        expected,
      );
      assert.deepEqual(withoutDns(await packets.take()), []);
    });
  }

  test("a private address is refused inside an inspected connection, in words", async () => {
    for (const name of ["inspected", "secret"]) {
      const host = `${name}.example.com`;
      internet.dns.set(host, { A: ["192.168.1.1"] });
      const wire = await inside(internet, gate, host);
      const answer = await wire.send(head("GET / HTTP/1.1", `Host: ${host}`));
      assertRefused(answer, { status: 403, reason: "address-not-public", host });
      assert.doesNotMatch(answer.body, /192\.168/);
    }
  });
});

describe("dns.hosts", () => {
  test("its answers are vetted like any other", async () => {
    const answer = await askConnect(internet, "fixed.example.com:443");
    assertRefused(answer, { status: 403, reason: "address-not-public" });
    assert.equal(internet.dns.queries.filter(({ name }) => name === "fixed.example.com").length, 0);
  });
});

describe("rebinding", () => {
  test("a name that moves to a private address is refused at the next dial", async () => {
    const host = "moving.example.com";
    internet.dns.set(host, { A: [PUBLIC_V4], ttl: 0 }, { A: ["169.254.169.254"], ttl: 0 });
    const bytes = head(`GET http://${host}/ HTTP/1.1`, `Host: ${host}`);
    assert.equal((await askPlain(internet, bytes)).body, "once");
    await packets.take();
    assertRefused(await askPlain(internet, bytes), { status: 403, reason: "address-not-public", host });
    assert.deepEqual(withoutDns(await packets.take()), []);
  });

  test("one lookup serves one dial: the answer that was judged is the one that is dialled", async () => {
    const host = "flip.example.com";
    internet.dns.set(host, { A: [PUBLIC_V4], ttl: 0 }, { A: ["127.0.0.1"], ttl: 0 });
    const before = origins[0]?.connections.length ?? 0;
    const wire = await dialThrough(internet, `${host}:443`, { ca: internet.authority.certPem });
    assert.equal((await wire.send(head("GET / HTTP/1.1", `Host: ${host}`))).body, "ok");
    assert.equal(internet.dns.queries.filter(({ name, type }) => name === host && type === "A").length, 1);
    assert.equal(origins[0]?.connections.length, before + 1);
  });
});

describe("a mixed answer", () => {
  test("the public address of it is dialled, the private one is not", async () => {
    internet.dns.set("mixed.example.com", { A: ["192.168.1.1", PUBLIC_V4], AAAA: ["::1", "fd00::1"] });
    await packets.take();
    const wire = await dialThrough(internet, "mixed.example.com:443", { ca: internet.authority.certPem });
    assert.equal((await wire.send(head("GET / HTTP/1.1", "Host: mixed.example.com"))).body, "ok");
    const dialled = withoutDns(await packets.take()).filter((line) => line.endsWith(" S"));
    assert.match(dialled.join("\n"), /^tcp \S+ > 11\.0\.0\.10\.443 S$/);
  });

  test("IPv6 alone works", async () => {
    internet.dns.set("six.example.com", { AAAA: [PUBLIC_V6[0]] });
    const wire = await dialThrough(internet, "six.example.com:443", { ca: internet.authority.certPem });
    assert.equal((await wire.send(head("GET / HTTP/1.1", "Host: six.example.com"))).body, "ok");
    assert.equal(origins[3]?.connections.length, 1);
  });
});

describe("upstream.allow_ranges", () => {
  for (const [host, address, opens] of [
    ["private.example.com", PRIVATE_V4, true],
    ["db.corp.example.com", PRIVATE_V4, true],
    ["unopened.example.com", PRIVATE_V4, false],
    ["a.other.example.org", PRIVATE_V4, false],
  ] as const) {
    test(`${opens ? "opens" : "does not open"} a listed range to ${host}`, async () => {
      internet.dns.set(host, { A: [address] });
      const answer = await askConnect(internet, `${host}:443`);
      if (opens) assert.equal(statusOf(answer), 200, answer.head + answer.body);
      else assertRefused(answer, { status: 403, reason: "address-not-public" });
    });
  }

  for (const [address, reason] of [
    ["10.20.9.9", "address-denied"],
    ["10.21.0.1", "address-not-public"],
    ["127.0.0.1", "loopback"],
    ["169.254.169.254", "address-not-public"],
  ] as const) {
    test(`an opted-in name still may not reach ${address}: ${reason}`, async () => {
      internet.dns.set("other.corp.example.com", { A: [address], ttl: 0 });
      internet.dns.set(`at-${address.replaceAll(".", "-")}.corp.example.com`, { A: [address] });
      const answer = await askConnect(internet, `at-${address.replaceAll(".", "-")}.corp.example.com:443`);
      assertRefused(answer, { status: 403, reason });
    });
  }

  test("a literal that is listed is dialled as it stands, and its neighbour is refused", async () => {
    const literal = await createOrigin(internet, { address: "10.20.0.6", port: 80 });
    const answer = await askPlain(internet, head("GET http://10.20.0.6/ HTTP/1.1", "Host: 10.20.0.6"));
    assert.deepEqual([answer.body, literal.requests.length], ["ok", 1]);
    const neighbour = await askPlain(internet, head("GET http://10.20.0.7/ HTTP/1.1", "Host: 10.20.0.7"));
    assertRefused(neighbour, { status: 403, reason: "address-not-public" });
    const unlisted = await askPlain(internet, head("GET http://11.0.0.12/ HTTP/1.1", "Host: 11.0.0.12"));
    assertRefused(unlisted, { status: 403, reason: "no-rule-matched" });
  });
});

describe("a resolver in trouble", () => {
  for (const [what, zone, status, code] of [
    ["says SERVFAIL", { rcode: "SERVFAIL" }, 502, "E_RESOLVE"],
    ["says NXDOMAIN", { rcode: "NXDOMAIN" }, 502, "E_RESOLVE"],
    ["has no address", {}, 502, "E_RESOLVE"],
    ["goes round in a circle", { cname: "circle.example.com" }, 502, "E_RESOLVE"],
  ] as const) {
    test(`${what}: the exchange fails, and is never let through`, async () => {
      internet.dns.set("circle.example.com", zone);
      const host = what.includes("circle")
        ? "circle.example.com"
        : `trouble-${what.replaceAll(" ", "-").toLowerCase()}.example.com`;
      internet.dns.set(host, zone);
      assertFailed(await askConnect(internet, `${host}:443`), status, code);
    });
  }

  test("a truncated answer is asked for again over TCP", async () => {
    internet.dns.set("big.example.com", { A: [PUBLIC_V4], truncate: true });
    assert.equal(statusOf(await askConnect(internet, "big.example.com:443")), 200);
    const asked = internet.dns.queries.filter(({ name, type }) => name === "big.example.com" && type === "A");
    assert.deepEqual(
      asked.map(({ transport }) => transport),
      ["udp", "tcp"],
    );
  });

  test("a thousand addresses in one answer are no trouble", async () => {
    const many = Array.from({ length: 1000 }, (_, index) => `192.168.${index >> 8}.${index & 255}`);
    internet.dns.set("many.example.com", { A: many, truncate: true });
    assertRefused(await askConnect(internet, "many.example.com:443"), {
      status: 403,
      reason: "address-not-public",
    });
  });
});
