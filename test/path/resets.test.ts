/** Connections that break off at every step of both sides: the process stays up, and nothing is left open (K11, D22). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askInside, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Connection } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import type { Wire } from "../support/wire-client.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const SEEN = "seen.example.com";
const TUNNEL = "tunnel.example.com";
const TIMES = 8;

let internet: Internet;
let gate: Gate;
let respondWith: (connection: Connection) => void = () => undefined;

before(async () => {
  internet = await createInternet();
  for (const name of [SEEN, TUNNEL]) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set("rst.example.com", { A: ["11.0.0.11"] });
  const answer = (_request: unknown, connection: Connection) => {
    respondWith(connection);
    return undefined;
  };
  await createOrigin(internet, { tls: [SEEN, TUNNEL], bound: true, answer });
  await createOrigin(internet, { answer });
  const allowlist = [
    { domain: SEEN, transform: { Authorization: SECRET } },
    { domain: TUNNEL },
    { domain: "rst.example.com" },
  ];
  gate = await startGate(internet, {
    network: { allowlist },
    limits: { head_timeout: "2s", handshake_timeout: "2s" },
  });
});
after(() => internet.close());

function whole({ socket }: Connection): void {
  socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 2")}ok`);
}

function half({ socket }: Connection): void {
  socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 20")}half`);
}

const CONNECT = head(`CONNECT ${SEEN}:443 HTTP/1.1`, `Host: ${SEEN}`);
const GET = head("GET / HTTP/1.1", `Host: ${SEEN}`);
const POST = head("POST / HTTP/1.1", `Host: ${SEEN}`, "Content-Length: 100");

async function after200(bytes: string): Promise<Wire> {
  const wire = await dial(internet);
  await wire.send(CONNECT, { connect: true });
  wire.write(bytes);
  return wire;
}

async function insideWith(bytes: string, until: (text: string) => boolean = () => true): Promise<Wire> {
  const wire = await inside(internet, gate, SEEN);
  wire.write(bytes);
  await wire.until("what comes back", until);
  return wire;
}

async function plainWith(bytes: string): Promise<Wire> {
  const wire = await dial(internet);
  wire.write(bytes);
  return wire;
}

const CLIENT_STEPS: Readonly<Record<string, () => Promise<Wire>>> = {
  "after the accept": () => dial(internet),
  "within a head": () => plainWith("GET http://a.example.com/ HT"),
  "after a refused request": () =>
    plainWith(head("GET http://no.example.org/ HTTP/1.1", "Host: no.example.org")),
  "after CONNECT": () => plainWith(CONNECT),
  "after CONNECT to a tunnel": () => plainWith(head(`CONNECT ${TUNNEL}:443 HTTP/1.1`, `Host: ${TUNNEL}`)),
  "after the 200": () => after200(""),
  "within the ClientHello": () => after200("\x16\x03\x01\x00\xf0\x01\x00"),
  "after a garbled ClientHello": () => after200(`\x16\x03\x01\x00\x20${"x".repeat(32)}`),
  "after bytes that are no TLS": () => after200("SSH-2.0-x\r\n"),
  "after the handshake": () => insideWith(""),
  "within a head inside TLS": () => insideWith("GET / HT"),
  "after a request": () => insideWith(GET),
  "within a request body": () => insideWith(`${POST}part`),
  "within a response": () => insideWith(GET, (text) => text.includes("half")),
  "within a tunnel": async () => {
    const wire = await dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem });
    wire.write(head("GET / HTTP/1.1", `Host: ${TUNNEL}`));
    await wire.until("a response", (text) => text.includes("half"));
    return wire;
  },
};

describe("a client that breaks off", () => {
  for (const [where, step] of Object.entries(CLIENT_STEPS)) {
    for (const how of ["reset", "destroy"] as const) {
      test(`${where}, by ${how}, hurts nobody`, async () => {
        const open = await connections();
        respondWith = half;
        for (let count = 0; count < TIMES; count += 1) {
          const wire = await step();
          wire[how]();
        }
        await stillUp(open);
      });
    }
  }
});

const UPSTREAM_STEPS: Readonly<Record<string, (connection: Connection) => void>> = {
  "after a request": ({ reset }) => reset(),
  "within a head": ({ socket, reset }) => socket.write("HTTP/1.1 20", reset),
  "within a response": ({ socket, reset }) =>
    socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 20")}half`, reset),
  "after a whole response": ({ socket, reset }) =>
    socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 2")}ok`, reset),
  "after an interim response": ({ socket, reset }) => socket.write(head("HTTP/1.1 103 Early Hints"), reset),
};

describe("an upstream that breaks off", () => {
  for (const [where, behave] of Object.entries(UPSTREAM_STEPS)) {
    test(`${where} hurts nobody`, async () => {
      const open = await connections();
      for (let count = 0; count < TIMES; count += 1) {
        respondWith = behave;
        await askInside(internet, gate, SEEN).catch(() => undefined);
      }
      await stillUp(open);
    });
  }

  test("at the accept, and within the handshake, hurts nobody", async () => {
    const open = await connections();
    const origin = await createOrigin(internet, {
      address: "11.0.0.11",
      port: 443,
      serve: ({ socket, reset }) =>
        void (origin.connections.length % 2 === 0 ? reset() : socket.once("data", reset)),
    });
    for (let count = 0; count < TIMES; count += 1) {
      await dialThrough(internet, "rst.example.com:443", { ca: gate.ca }).catch(() => undefined);
    }
    await stillUp(open);
  });
});

async function connections(): Promise<number> {
  return (await gate.metrics()).sum("sallyport_connections");
}

/** A right request still works, nothing unforeseen was thrown, and no connection more than before is open. */
async function stillUp(open: number): Promise<void> {
  respondWith = whole;
  const wire = await inside(internet, gate, SEEN);
  assert.equal(statusOf(await wire.send(GET)), 200);
  wire.destroy();
  assert.doesNotMatch(gate.log, /uncaught|unhandled|TypeError|E_INTERNAL/i);
  const end = Date.now() + 5_000;
  while ((await connections()) > open) assert.ok(Date.now() < end, "connections leak");
}
