/** One line for each exchange, with facts and no payload, whatever a client puts into it (K09, G13). */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askConnect, askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "api.example.com";
const KEYS = [
  ...[
    "time",
    "session",
    "seq",
    "sandbox",
    "client",
    "listener",
    "protocol",
    "visibility",
    "method",
    "host",
    "port",
  ],
  ...["path", "verdict", "reason", "rule", "would", "injected", "policy", "status", "bytes_out", "bytes_in"],
  ...["duration_ms", "failure"],
].sort();

let internet: Internet;
let gate: Gate;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, "plain.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  await createOrigin(internet, { tls: [HOST], bound: true });
  await createOrigin(internet);
  const allowlist = [{ domain: HOST, transform: { Authorization: SECRET } }, { domain: "plain.example.com" }];
  gate = await startGate(internet, { network: { allowlist } });
});
after(() => internet.close());

describe("a record", () => {
  test("has the fields of the contract, and the facts of an inspected exchange", async () => {
    const bytes = head("POST /a/b?query=private HTTP/1.1", `Host: ${HOST}`, "Content-Length: 3");
    await askInside(internet, gate, HOST, `${bytes}abc`);
    const record = await gate.record({ host: HOST });
    assert.deepEqual(Object.keys(record).sort(), KEYS);
    const { time, session, seq, duration_ms, policy, ...facts } = record as Record<string, unknown>;
    assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000 && Number(duration_ms) > 0);
    assert.match(`${session} ${seq} ${policy}`, /^\S+ \d+ [0-9a-f]{12}$/);
    assert.deepEqual(facts, {
      sandbox: null,
      client: "127.0.0.1",
      listener: "explicit",
      protocol: "http/1.1",
      visibility: "request",
      method: "POST",
      host: HOST,
      port: 443,
      path: "/a/b",
      verdict: "allow",
      reason: "rule-allows",
      rule: HOST,
      would: null,
      injected: ["Authorization"],
      status: 200,
      bytes_out: 3,
      bytes_in: 2,
      failure: null,
    });
  });
});

const HOSTILE = {
  "an escape sequence in the path": head(
    "GET http://plain.example.com/\x9b31m HTTP/1.1",
    "Host: plain.example.com",
  ),
  "quotes in the path": head(
    'GET http://plain.example.com/"},{"verdict":"allow" HTTP/1.1',
    "Host: plain.example.com",
  ),
  "a line separator in the path": head(
    "GET http://plain.example.com/\xe2\x80\xa8 HTTP/1.1",
    "Host: plain.example.com",
  ),
  "an odd method": head("B*NG http://plain.example.com/ HTTP/1.1", "Host: plain.example.com"),
  "a path of 20 KiB": head(
    `GET http://plain.example.com/${"a".repeat(20_000)} HTTP/1.1`,
    "Host: plain.example.com",
  ),
};

describe("records", () => {
  test("are one for each exchange, and numbered without a gap", async () => {
    const before = gate.records.length;
    const wire = await inside(internet, gate, HOST);
    for (let count = 0; count < 3; count += 1) await wire.send(head("GET / HTTP/1.1", `Host: ${HOST}`));
    await askConnect(internet, "no.example.org:443");
    await askPlain(internet, head("GET http://plain.example.com/ HTTP/1.1", "Host: plain.example.com"));
    await askPlain(internet, "nonsense\r\n\r\n");
    assert.equal((await gate.recordAt(before + 5))["status"], 400);
    assert.equal(gate.records.length, before + 6);
    const numbers = gate.records.map(({ seq }) => Number(seq));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + (numbers[0] ?? 0)),
    );
  });

  for (const [what, bytes] of Object.entries(HOSTILE)) {
    test(`of ${what} are one short line of printable characters`, async () => {
      const at = gate.records.length;
      await askPlain(internet, bytes);
      const record = await gate.recordAt(at);
      assert.equal(gate.records.length, at + 1);
      assert.doesNotMatch(Object.values(record).join(), /[\p{Cc}\p{Cf}\u2028\u2029]/u);
      assert.ok(String(record["path"]).length <= 1_100 && String(record["method"]).length <= 1_100);
    });
  }
});
