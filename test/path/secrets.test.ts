/** A secret goes over verified TLS, to its host, in its field; wherever that cannot be, the request is refused. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askInside, askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromEnv, fromFile, SECRET, startGate } from "../support/gate.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Packets } from "../support/packets.ts";
import { watchPackets } from "../support/packets.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const HOST = "api.example.com";
const LATE = "late.example.com";
const PATHS = "paths.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let packets: Packets;

before(async () => {
  internet = await createInternet();
  for (const name of [HOST, LATE, PATHS, "file.example.com"]) internet.dns.set(name, { A: [PUBLIC_V4] });
  origin = await createOrigin(internet, { tls: [HOST, LATE, PATHS, "file.example.com"], bound: true });
  packets = await watchPackets(internet);
  const files = { "secret-file": `${internet.canary.secret}\n` };
  const allowlist = [
    { domain: HOST, transform: [{ Authorization: `Bearer ${SECRET}` }, { "X-Second": "price $$5" }] },
    { domain: "file.example.com", transform: { "X-File": fromFile("secret-file") } },
    { domain: LATE, transform: { Authorization: fromEnv("ABSENT") } },
    {
      domain: PATHS,
      methods: ["GET"],
      paths: ["/repos/my-org/.*", "/"],
      transform: { Authorization: SECRET },
    },
  ];
  gate = await startGate(internet, { network: { allowlist } }, { files });
});
after(() => internet.close());

describe("plain HTTP to a host with a secret", () => {
  test("is refused as plaintext-secret, and no packet leaves", async () => {
    await packets.take();
    const answer = await askPlain(internet, head(`GET http://${HOST}/ HTTP/1.1`, `Host: ${HOST}`));
    assertRefused(answer, { status: 403, reason: "plaintext-secret", host: HOST, rule: HOST });
    assert.deepEqual(await packets.take(), []);
  });

  test("is refused on port 443 too, inside a CONNECT", async () => {
    const connect = head(`CONNECT ${HOST}:443 HTTP/1.1`, `Host: ${HOST}`);
    const bytes = `${connect}${head("GET / HTTP/1.1", `Host: ${HOST}`)}`;
    await packets.take();
    const answer = await askPlain(internet, bytes, { connect: true });
    assert.equal(statusOf(answer), 200);
    assert.deepEqual(await packets.take(), []);
  });
});

describe("what is injected", () => {
  test("several fields of several objects, a literal dollar among them", async () => {
    await askInside(internet, gate, HOST);
    const request = origin.requests.at(-1);
    assert.ok(request);
    assert.deepEqual(valuesOf(request, "authorization"), [`Bearer ${internet.canary.secret}`]);
    assert.deepEqual(valuesOf(request, "x-second"), ["price $5"]);
  });

  test("is not told to anybody: neither a record nor /readyz knows more than the field's name", async () => {
    await askInside(internet, gate, HOST);
    const record = await gate.record({ host: HOST, verdict: "allow" });
    assert.deepEqual(record["injected"], ["Authorization", "X-Second"]);
    await gate.admin("/readyz");
    await gate.admin("/metrics");
    assert.doesNotThrow(() => internet.canary.assertUnseen());
  });

  test("from a file comes without its trailing newline, and anew when the file changes", async () => {
    await askInside(internet, gate, "file.example.com");
    assert.equal(oneValue(origin.requests.at(-1) ?? { fields: [] }, "x-file"), internet.canary.secret);
    writeFileSync(join(dirname(gate.configFile), "secret-file"), "changed\n");
    const end = Date.now() + 10_000;
    for (;;) {
      await askInside(internet, gate, "file.example.com");
      const value = oneValue(origin.requests.at(-1) ?? { fields: [] }, "x-file");
      if (value === "changed") break;
      assert.ok(Date.now() < end, `still ${value === internet.canary.secret ? "the old one" : value}`);
      await delay(50);
    }
  });

  test("that cannot be resolved refuses its rule and no other", async () => {
    const before = origin.requests.length;
    const answer = await askInside(internet, gate, LATE);
    assertRefused(answer, { status: 403, reason: "secret-unavailable", rule: LATE });
    assert.equal(origin.requests.length, before);
    assert.equal((await gate.metrics()).sum("sallyport_secrets_unavailable"), 1);
    assert.match((await gate.admin("/readyz")).body, /allowlist\[2\]/);
    assert.equal(statusOf(await askInside(internet, gate, HOST)), 200);
  });

  test("is not set, nor replaced, by a trailer of the client's", async () => {
    const lines = [
      "POST / HTTP/1.1",
      `Host: ${HOST}`,
      "Transfer-Encoding: chunked",
      "Trailer: Authorization, X-Fine",
    ];
    const body = "2\r\nhi\r\n0\r\nAuthorization: stolen\r\nX-Fine: 1\r\n\r\n";
    assert.equal(statusOf(await askInside(internet, gate, HOST, head(...lines) + body)), 200);
    const request = origin.requests.at(-1);
    assert.deepEqual(request?.trailers, [["X-Fine", "1"]]);
    assert.equal(request?.body, "hi");
  });
});

describe("a request to a host with a secret", () => {
  for (const method of ["TRACE", "TRACK"]) {
    test(`${method} is method-refused, and no packet leaves`, async () => {
      await packets.take();
      const answer = await askInside(internet, gate, HOST, head(`${method} / HTTP/1.1`, `Host: ${HOST}`));
      if (method === "TRACE") assertRefused(answer, { status: 403, reason: "method-refused" });
      else assert.ok([200, 400, 403].includes(statusOf(answer)));
      if (method === "TRACE") assert.deepEqual(await packets.take(), []);
    });
  }

  test("another CONNECT inside is refused", async () => {
    const answer = await askInside(
      internet,
      gate,
      HOST,
      head("CONNECT evil.example.com:443 HTTP/1.1", `Host: ${HOST}`),
    );
    assert.ok([403, 405, 421].includes(statusOf(answer)), answer.head);
  });
});

const PATH_CASES: readonly (readonly [target: string, expected: number | string])[] = [
  ["/repos/my-org/a", 200],
  ["/repos/my-org/a?path=/../x", 200],
  ["/repos/my-org/%61", 200],
  ["/repos/my-org", "no-rule-matched"],
  ["/repos/other/a", "no-rule-matched"],
  ["/x/repos/my-org/a", "no-rule-matched"],
  ["/repos/my-org/../other", "path-ambiguous"],
  ["/repos/my-org/%2e%2e/other", "path-ambiguous"],
  ["/repos/my-org/./a", "path-ambiguous"],
  ["/repos/my-org//a", "path-ambiguous"],
  ["/repos/my-org/a%2fb", "path-ambiguous"],
  ["/repos/my-org/a%5cb", "path-ambiguous"],
  ["/repos/my-org/a\\b", "path-ambiguous"],
  ["/repos/my-org/a;b", "path-ambiguous"],
  ["/repos/my-org/a%00b", "path-ambiguous"],
  ["/repos/my-org/a%252fb", "path-ambiguous"],
];

describe("an entry with methods and paths", () => {
  for (const [target, expected] of PATH_CASES) {
    test(`${target} is ${expected}, and what passes leaves as it came`, async () => {
      const before = origin.requests.length;
      const answer = await askInside(internet, gate, PATHS, head(`GET ${target} HTTP/1.1`, `Host: ${PATHS}`));
      if (expected === 200) {
        assert.equal(statusOf(answer), 200, answer.body);
        assert.equal(origin.requests.at(-1)?.start, `GET ${target} HTTP/1.1`);
      } else {
        assertRefused(answer, { status: 403, reason: String(expected) });
        assert.equal(origin.requests.length, before);
      }
    });
  }

  for (const field of [
    "X-HTTP-Method-Override: DELETE",
    "X-Original-URL: /admin",
    "X-Rewrite-URL: /admin",
    "X-Method-Override: PUT",
  ]) {
    test(`${field} is refused`, async () => {
      const before = origin.requests.length;
      const answer = await askInside(internet, gate, PATHS, head("GET / HTTP/1.1", `Host: ${PATHS}`, field));
      assert.equal(statusOf(answer), 403, answer.head);
      assert.equal(origin.requests.length, before);
    });
  }

  test("another method is refused in words, and what was sent after it is not looked at", async () => {
    const before = origin.requests.length;
    const wire = await inside(internet, gate, PATHS);
    const refused = head("DELETE /repos/my-org/a HTTP/1.1", `Host: ${PATHS}`);
    const answer = await wire.send(refused + head("GET / HTTP/1.1", `Host: ${PATHS}`));
    assertRefused(answer, { status: 403, reason: "no-rule-matched" });
    await wire.closed();
    assert.deepEqual([wire.received, origin.requests.length], ["", before]);
  });
});
