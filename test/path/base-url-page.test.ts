/** No web page spends a sandbox's credentials by way of the base-URL door. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, REVERSE, REVERSE_LISTEN, REVERSE_URL } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, GATE_V4, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dial } from "../support/wire-client.ts";

const HOST = "api.example.com";

let internet: Internet;
let gate: Gate;
let origin: Origin;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  const lines = [
    "Access-Control-Allow-Origin: *",
    "access-control-allow-credentials: true",
    'Clear-Site-Data: "*"',
  ];
  origin = await createOrigin(internet, {
    tls: [HOST],
    bound: true,
    answer: () => respond("ok", "200 OK", [...lines, "Content-Security-Policy: default-src 'self'"]),
  });
  gate = await startGate(internet, {
    ...REVERSE_LISTEN,
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
});
after(() => internet.close());

async function askAs(host: string, lines: readonly string[] = [], method = "GET"): Promise<Message> {
  const wire = await dialReverse(internet);
  const bytes = head(`${method} /${HOST}/ HTTP/1.1`, `Host: ${host}`, ...lines);
  return await wire.send(bytes).finally(() => wire.destroy());
}

async function refused(answer: Promise<Message>): Promise<void> {
  const before = origin.requests.length;
  const message = await answer;
  assertRefused(message, { status: 403, reason: "cross-site", host: HOST });
  assert.deepEqual(
    message.fields.filter(([name]) => /^access-control/i.test(name)),
    [],
  );
  assert.equal(origin.requests.length, before);
}

describe("Host", () => {
  for (const host of ["127.0.0.1:8081", "localhost:8081", "LOCALHOST:8081", "localhost.:8081"]) {
    test(`${host} is the door's own`, async () => {
      assert.equal(statusOf(await askAs(host)), 200);
    });
  }

  for (const host of [
    HOST,
    `${HOST}:8081`,
    "evil.example.org:8081",
    "localhost",
    "127.0.0.1",
    "127.0.0.1:8080",
    "127.0.0.2:8081",
    "[::1]:8081",
    "localhost.evil.example.org:8081",
    `${GATE_V4}:8081`,
  ]) {
    test(`${host} is somebody else's, who may have pointed it here`, async () => {
      await refused(askAs(host));
    });
  }
});

describe("what a browser says", () => {
  for (const line of [
    "Origin: https://evil.example.org",
    "Origin: null",
    "Origin: http://localhost:3000",
    "Origin: http://127.0.0.1",
    "Origin: https://127.0.0.1:8081",
    "Origin: http://localhost:8081",
    "Origin:",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
    "Sec-Fetch-Site: anything",
  ]) {
    for (const method of ["GET", "POST", "OPTIONS"]) {
      test(`${line} of a ${method} is refused`, async () => {
        await refused(askAs("127.0.0.1:8081", [line], method));
      });
    }
  }

  test("of two origins is refused where one is another's", async () => {
    await refused(askAs("127.0.0.1:8081", [`Origin: ${REVERSE_URL}`, "Origin: https://evil.example.org"]));
  });

  for (const lines of [
    [`Origin: ${REVERSE_URL}`],
    ["Sec-Fetch-Site: same-origin"],
    ["Sec-Fetch-Site: none"],
  ]) {
    test(`${lines.join()} is no page of another site`, async () => {
      assert.equal(statusOf(await askAs("127.0.0.1:8081", lines)), 200);
    });
  }

  test("is refused before an upgrade too", async () => {
    await refused(
      askReverse(internet, `GET /${HOST}/`, [
        "Origin: https://evil.example.org",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ]),
    );
  });

  test("is recorded with its reason", async () => {
    await askAs("127.0.0.1:8081", ["Origin: https://evil.example.org"], "PUT");
    const record = await gate.record({ method: "PUT" });
    const { listener, verdict, reason, host, status, injected } = record;
    assert.deepEqual(
      { listener, verdict, reason, host, status, injected },
      { listener: "reverse", verdict: "deny", reason: "cross-site", host: HOST, status: 403, injected: [] },
    );
    const labels = { listener: "reverse", reason: "cross-site" };
    assert.ok((await gate.metrics()).sum("sallyport_exchanges_total", labels) > 0);
  });
});

describe("a document from here", () => {
  test("is of no site, may be read by none, and wipes nothing", async () => {
    const answer = await askAs("127.0.0.1:8081");
    assert.deepEqual(valuesOf(answer, "content-security-policy"), ["default-src 'self'", "sandbox"]);
    assert.deepEqual(
      answer.fields.filter(([name]) => /^(access-control|clear-site)/i.test(name)),
      [],
    );
  });
});

describe("a door at every address", () => {
  test("takes any literal address for its own, since ports may be mapped to it, and no name but localhost", async () => {
    const wide = await createInternet();
    try {
      wide.dns.set(HOST, { A: [PUBLIC_V4] });
      await createOrigin(wide, { tls: [HOST], bound: true });
      await startGate(wide, {
        listen: { reverse: `0.0.0.0:${REVERSE.port}`, admin: "127.0.0.1:9464" },
        network: { allowlist: [{ domain: HOST }] },
      });
      for (const [host, status] of [
        [`${GATE_V4}:8081`, 200],
        ["192.0.2.7:9000", 200],
        ["localhost:9000", 200],
        ["evil.example.org:8081", 403],
      ] as const) {
        const wire = await dial(wide, { host: GATE_V4, port: REVERSE.port });
        const answer = await wire.send(head(`GET /${HOST}/ HTTP/1.1`, `Host: ${host}`));
        assert.equal(statusOf(answer), status, host);
        wire.destroy();
      }
    } finally {
      await wide.close();
    }
  });
});
