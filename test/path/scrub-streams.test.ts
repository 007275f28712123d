/** Answers that are searched while they come: broken ones, trailers, secrets that were rotated, and those of credentials. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { askInside, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromFile, SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue } from "../support/message-reader.ts";
import { type Connection, createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "echo.example.com";
const ROTATED = "rotated.example.com";
const BEARER = "bearer.example.com";
const BASIC = "basic.example.com";
const HOSTS = [HOST, ROTATED, BEARER, BASIC];

let internet: Internet;
let gate: Gate;
let reply: (request: Message, connection: Connection) => string | undefined = () => undefined;

before(async () => {
  internet = await createInternet();
  for (const name of HOSTS) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: HOSTS, bound: true, answer: (...args) => reply(...args) });
  gate = await startGate(
    internet,
    {
      network: {
        allowlist: [
          { domain: HOST, transform: { Authorization: SECRET } },
          { domain: ROTATED, transform: { Authorization: fromFile("rotated") } },
          { domain: BEARER, credential: "bearer" },
          { domain: BASIC, credential: "basic" },
        ],
      },
      credentials: [
        { id: "bearer", type: "bearer_token", token: SECRET },
        { id: "basic", type: "basic", username: "gate", password: SECRET },
      ],
    },
    { files: { rotated: "first-of-secrets\n" } },
  );
});
after(() => internet.close());

test("a coded body that breaks half-way never ends as a whole one", async () => {
  const noise = randomBytes(200_000).toString("base64");
  const coded = gzipSync(noise);
  reply = (_request, { socket }) => {
    const half = coded.subarray(0, coded.length >> 1);
    const broken = Buffer.concat([half, Buffer.alloc(2_000, 0xff)]);
    socket.write(head("HTTP/1.1 200 OK", "Content-Encoding: gzip", "Transfer-Encoding: chunked"));
    socket.write(`${broken.length.toString(16)}\r\n`);
    socket.write(broken);
    socket.write("\r\n0\r\n\r\n");
    return undefined;
  };
  const wire = await inside(internet, gate, HOST);
  wire.write(head("GET / HTTP/1.1", `Host: ${HOST}`));
  assert.equal(await wire.closed(), "error");
  assert.match(wire.received, /^HTTP\/1\.1 200 /);
  assert.equal(wire.received.endsWith("0\r\n\r\n"), false);
  wire.destroy();
  const { failure } = await gate.record({ host: HOST });
  assert.equal(failure, "E_UPSTREAM_PROTOCOL");
});

test("a secret in a trailer of HTTP/1 is masked", async () => {
  const { secret } = internet.canary;
  reply = () =>
    `${head("HTTP/1.1 200 OK", "Trailer: X-Echo", "Transfer-Encoding: chunked")}2\r\nok\r\n0\r\nX-Echo: ${secret}\r\n\r\n`;
  const wire = await inside(internet, gate, HOST);
  const message = await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`, "TE: trailers"));
  assert.equal(message.body, "ok");
  assert.equal(wire.received.includes(secret), false);
  assert.equal(JSON.stringify(message).includes(secret), false);
  wire.destroy();
});

test("a secret that was rotated a moment ago is masked beside the one in force", async () => {
  let sent = "";
  reply = (request) => {
    sent = oneValue(request, "authorization") ?? "";
    return respond("first-of-secrets second-one-of-them third-unknown-text");
  };
  const first = await askInside(internet, gate, ROTATED);
  assert.equal(first.body, `${"*".repeat(16)} second-one-of-them third-unknown-text`);
  writeFileSync(join(dirname(gate.configFile), "rotated"), "second-one-of-them\n");
  for (const end = Date.now() + 10_000; sent !== "second-one-of-them"; ) {
    assert.ok(Date.now() < end, "the file is not read again");
    const { body } = await askInside(internet, gate, ROTATED);
    assert.equal(body.includes("first-of-secrets"), false);
    if (sent === "second-one-of-them")
      assert.equal(body, `${"*".repeat(16)} ${"*".repeat(18)} third-unknown-text`);
  }
});

test("the secrets of credentials are masked, whatever they were made into", async () => {
  for (const host of [BEARER, BASIC]) {
    reply = (request) => respond(`${oneValue(request, "authorization")} ${internet.canary.secret}`);
    const { body } = await askInside(internet, gate, host);
    const [scheme, value = "", plain = ""] = body.split(" ");
    assert.equal(scheme, host === BEARER ? "Bearer" : "Basic");
    assert.match(value, /\*{36}/);
    assert.match(plain, /^\*+$/);
  }
});
