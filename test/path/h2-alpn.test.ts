/** A client is offered what the upstream speaks, out of what it offers itself; injecting a secret changes no protocol. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { head } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { BOTH, openH2, openWire } from "../support/h2-client.ts";
import type { H2Origin } from "../support/h2-origin.ts";
import { createH2Origin } from "../support/h2-origin.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { curl } from "../support/programs.ts";

const H2 = "h2.example.com";
const H1 = "h1.example.com";
const DOWN = "down.example.com";
const PRIVATE = "private.example.com";
const STRANGE = "strange.example.com";
const H1_V4 = "11.0.0.11";

let internet: Internet;
let gate: Gate;
let h2: H2Origin;
let h1: Origin;

before(async () => {
  internet = await createInternet();
  for (const [name, address] of [
    [H2, PUBLIC_V4],
    [H1, H1_V4],
    [DOWN, "11.0.0.99"],
    [PRIVATE, "10.1.2.3"],
  ] as const) {
    internet.dns.set(name, { A: [address] });
  }
  h2 = await createH2Origin(internet, {
    names: [H2],
    bound: true,
    serve: (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("two");
    },
  });
  h1 = await createOrigin(internet, { address: H1_V4, tls: [H1], bound: true });
  const transform = { Authorization: SECRET };
  gate = await startGate(internet, {
    network: { allowlist: [H2, H1, DOWN, PRIVATE, STRANGE].map((domain) => ({ domain, transform })) },
  });
});
after(() => internet.close());

test("an upstream that speaks HTTP/2 makes the client speak it, on the connection that was made to ask", async () => {
  const client = await openH2(internet, gate, H2);
  assert.equal(h2.sockets.length, 1);
  assert.equal((await client.ask([])).body, "two");
  assert.equal(h2.sockets.length, 1);
});

test("what was learnt is remembered: the next handshake asks nobody, and streams share a connection", async () => {
  const before = h2.sockets.length;
  const clients = await Promise.all([1, 2, 3].map(() => openH2(internet, gate, H2)));
  const answers = await Promise.all(clients.map((client) => client.ask([])));
  assert.deepEqual(
    answers.map(({ body }) => body),
    ["two", "two", "two"],
  );
  assert.equal(h2.sockets.length, before);
});

test("an upstream that speaks HTTP/1.1 makes the client speak it, on the connection that was made to ask", async () => {
  const wire = await openWire(internet, gate, H1);
  assert.equal(wire.socket.alpnProtocol, "http/1.1");
  const before = h1.connections.length;
  assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${H1}`))), 200);
  assert.equal(h1.connections.length, before);
});

for (const [what, alpn, negotiated] of [
  ["offers HTTP/1.1 alone gets it", ["http/1.1"], "http/1.1"],
  ["offers nothing gets HTTP/1.1 without a word", [], false],
] as const) {
  test(`a client that ${what}, whatever the upstream likes better`, async () => {
    const wire = await openWire(internet, gate, H2, alpn);
    assert.equal(wire.socket.alpnProtocol, negotiated);
    const before = h2.requests.length;
    // The origin takes no HTTP/1.1, as it would not without the gate.
    assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${H2}`))), 502);
    assert.equal(h2.requests.length, before);
  });
}

test("curl gets HTTP/2 where there is some", async () => {
  const { stdout } = await curl(internet, gate.caPem, "--http2", "-w", " %{http_version}", `https://${H2}/`);
  assert.equal(stdout, "two 2");
});

for (const [what, host, status, told] of [
  ["cannot be reached", DOWN, 502, "E_CONNECT"],
  ["cannot be resolved", STRANGE, 502, "E_RESOLVE"],
  ["is at a refused address", PRIVATE, 403, "address-not-public"],
] as const) {
  test(`an upstream that ${what} is told of in the protocol that the client likes best`, async () => {
    const client = await openH2(internet, gate, host);
    const answer = await client.ask([]);
    assert.equal(answer.status, status);
    assert.ok(answer.pairs.includes(told));
    const wire = await openWire(internet, gate, host, [...BOTH].reverse());
    assert.equal(wire.socket.alpnProtocol, "http/1.1");
    assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${host}`))), status);
  });
}

test("an upstream that changed its mind still serves a client that was offered what it spoke before", async () => {
  const client = await openH2(internet, gate, H2);
  for (const socket of h2.sockets) socket.destroy();
  internet.dns.set(H2, { A: [H1_V4] });
  const answer = await client.ask(["cookie", "a=1", "cookie", "b=2"]);
  // The certificate is another's; the name of the protocol is not the question any more.
  assert.ok([200, 502].includes(answer.status));
});
