/** Where a rule needs nothing from inside, TLS passes unopened: but TLS it must be, and for the name that was asked. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { askConnect, head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertFailed, assertRefused } from "../support/refusal.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const HOST = "tunnel.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let tcp: Origin;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "always.example.com", "db.example.com", "down.example.com"]) {
    internet.dns.set(name, { A: [name.startsWith("down") ? "11.0.0.99" : PUBLIC_V4] });
  }
  origin = await createOrigin(internet, {
    tls: [HOST, "always.example.com"],
    answer: ({ start }) => respond(start),
  });
  tcp = await createOrigin(internet, {
    port: 5432,
    serve: ({ socket }) => {
      socket.write("server speaks first\n");
      socket.on("data", (bytes: Buffer) => void socket.write(`echo ${bytes}`));
      socket.on("end", () => socket.end("bye\n"));
    },
  });
  gate = await startGate(internet, {
    network: {
      allowlist: [
        { domain: HOST },
        { domain: "down.example.com" },
        { domain: "always.example.com", intercept: "always" },
        { domain: "db.example.com", ports: [5432], protocol: "tcp" },
      ],
    },
    limits: { handshake_timeout: "500ms", head_timeout: "500ms" },
  });
});
after(() => internet.close());

async function connect(authority = `${HOST}:443`): Promise<Wire> {
  const wire = await dial(internet);
  const answer = await wire.send(head(`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`), {
    connect: true,
  });
  assert.equal(statusOf(answer), 200);
  return wire;
}

describe("a tunnel", () => {
  test("shows the client the origin's own certificate, and the gate sees no request", async () => {
    const wire = await dialThrough(internet, `${HOST}:443`, { ca: internet.authority.certPem });
    const answer = await wire.send(head("GET /inner HTTP/1.1", `Host: ${HOST}`));
    assert.equal(answer.body, "GET /inner HTTP/1.1");
    const issuer = new X509Certificate(wire.socket.getPeerX509Certificate()?.raw ?? "").issuer;
    assert.equal(issuer, "CN=Throw-away root");
    wire.end();
    const record = await gate.record({ host: HOST });
    const { protocol, visibility, path, status } = record as Record<string, unknown>;
    assert.deepEqual(
      { protocol, visibility, path, status },
      { protocol: "tls-tunnel", visibility: "destination", path: null, status: 200 },
    );
    assert.ok(Number(record["bytes_out"]) > 100 && Number(record["bytes_in"]) > 100);
  });

  test("of an entry with intercept: always is looked into", async () => {
    const wire = await dialThrough(internet, "always.example.com:443", { ca: gate.ca });
    assert.equal(
      (await wire.send(head("GET /seen HTTP/1.1", "Host: always.example.com"))).body,
      "GET /seen HTTP/1.1",
    );
    assert.equal((await gate.record({ host: "always.example.com" }))["path"], "/seen");
  });
});

const NO_TLS = {
  SSH: "SSH-2.0-OpenSSH_9.2\r\n",
  SMTP: "EHLO me\r\n",
  zeros: "\0\0\0\0\0\0\0\0",
  "an SSLv2 hello": "\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
  "a TLS record of garbage": `\x16\x03\x01\x00\x20${"x".repeat(32)}`,
  "a TLS record that is no handshake": "\x17\x03\x03\x00\x05hello",
  "a record of no length": "\x16\x03\x01\x00\x00",
};

describe("a tunnel's first bytes", () => {
  for (const size of [1, 3, 100]) {
    test(`whose hello comes ${size} bytes at a time works all the same`, async () => {
      const wire = await connect();
      const plain = wire.socket;
      const write = plain.write.bind(plain);
      // The first flight alone: the hello.
      plain.write = ((bytes: Buffer, ...rest: never[]) => {
        plain.write = write as typeof plain.write;
        for (let at = 0; at < bytes.length; at += size) write(bytes.subarray(at, at + size));
        const done = rest.find((one) => typeof one === "function") as (() => void) | undefined;
        done?.();
        return true;
      }) as typeof plain.write;
      const secure = await wire.secure({ ca: internet.authority.certPem, servername: HOST });
      assert.equal((await secure.send(head("GET / HTTP/1.1", `Host: ${HOST}`))).body, "GET / HTTP/1.1");
    });
  }

  for (const [what, bytes] of Object.entries(NO_TLS)) {
    test(`does not carry ${what}`, async () => {
      const before = origin.connections.length;
      const wire = await connect();
      wire.write(bytes);
      await wire.closed();
      const dialled = origin.connections.slice(before);
      for (const { received } of dialled) assert.equal(received, "");
      const record = await gate.record({ bytes_out: 0 });
      const stated = record["reason"] === "needs-inspection" ? "E_BAD_HELLO" : record["failure"];
      assert.match(String(stated), /^E_(BAD_HELLO|BAD_REQUEST|TIMEOUT)$/, JSON.stringify(record));
    });
  }

  for (const [host, expected] of [
    [`${HOST}:443`, { status: 403, reason: "needs-inspection" }],
    ["evil.example.org", { status: 421, reason: "names-disagree" }],
  ] as const) {
    test(`that are plain HTTP for ${host} are refused in plain HTTP`, async () => {
      const wire = await connect();
      assertRefused(await wire.send(head("GET /plain HTTP/1.1", `Host: ${host}`)), expected);
      for (const { received } of origin.connections) assert.doesNotMatch(received, /plain/);
    });
  }

  test("whose client says nothing is closed in time", async () => {
    const wire = await connect();
    await wire.closed(3_000);
    await gate.record({ host: HOST, failure: "E_TIMEOUT", bytes_out: 0 });
  });

  test("to an upstream that is down is answered with the failure", async () => {
    assertFailed(await askConnect(internet, "down.example.com:443"), 502, "E_CONNECT");
  });
});

describe("a tcp entry", () => {
  test("carries bytes unseen, whoever speaks first, and half-closes", async () => {
    const wire = await connect("db.example.com:5432");
    await wire.until("the server's word", (text) => text === "server speaks first\n");
    wire.write("hi\n");
    await wire.until("the echo", (text) => text.endsWith("echo hi\n"));
    wire.end();
    await wire.until("what comes after the client's end", (text) => text.endsWith("bye\n"));
    assert.equal(await wire.closed(), "end");
    assert.equal(tcp.connections.length, 1);
    assert.equal((await gate.record({ host: "db.example.com" }))["protocol"], "tcp");
  });

  test("opens its port alone", async () => {
    assert.equal(statusOf(await askConnect(internet, "db.example.com:443")), 403);
  });
});
