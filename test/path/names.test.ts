/** Every name that a client states of one exchange must agree (D01 to D11), and a refusal reaches no upstream. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { askPlain, head, inside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";
import { dial, dialThrough } from "../support/wire-client.ts";

const A = "a.example.com";
const B = "b.example.com";
const TUNNEL = "tunnel.example.com";
const OTHER_V4 = "11.0.0.11";
const DISAGREE = { status: 421, reason: "names-disagree" };

let internet: Internet;
let gate: Gate;
let origins: readonly Origin[];

before(async () => {
  internet = await createInternet();
  internet.dns.set(A, { A: [PUBLIC_V4] });
  for (const name of [B, TUNNEL, "evil.example.com"]) internet.dns.set(name, { A: [OTHER_V4] });
  origins = [
    await createOrigin(internet, { tls: [A], bound: true }),
    await createOrigin(internet, { address: OTHER_V4, tls: [B, TUNNEL, "evil.example.com"] }),
    await createOrigin(internet, { address: OTHER_V4 }),
  ];
  gate = await startGate(internet, {
    network: {
      allowlist: [
        { domain: A, transform: { Authorization: SECRET } },
        { domain: B, intercept: "always" },
        { domain: TUNNEL },
      ],
    },
  });
});
after(() => internet.close());

function requestsSeen(): number {
  return origins.reduce((sum, { requests }) => sum + requests.length, 0);
}

describe("inside an inspected connection", () => {
  for (const [what, lines] of Object.entries({
    "another listed host": ["GET / HTTP/1.1", `Host: ${B}`],
    "an unlisted host (domain fronting)": ["GET / HTTP/1.1", "Host: evil.example.com"],
    "another port": ["GET / HTTP/1.1", `Host: ${A}:8443`],
    "an absolute-form target for another host": [`GET https://${B}/ HTTP/1.1`, `Host: ${A}`],
    "an absolute-form target for another host, Host agreeing with it": [
      `GET https://${B}/ HTTP/1.1`,
      `Host: ${B}`,
    ],
  })) {
    test(`a request that names ${what} is 421, and the connection closes`, async () => {
      const before = requestsSeen();
      const wire = await inside(internet, gate, A);
      assertRefused(await wire.send(head(...lines)), DISAGREE);
      await wire.closed();
      assert.equal(requestsSeen(), before);
    });
  }

  for (const [what, lines] of Object.entries({
    "in upper case": ["GET / HTTP/1.1", `Host: ${A.toUpperCase()}`],
    "with a trailing dot": ["GET / HTTP/1.1", `Host: ${A}.`],
    "with the default port": ["GET / HTTP/1.1", `Host: ${A}:443`],
    "in absolute form": [`GET https://${A}/ HTTP/1.1`, `Host: ${A}`],
  })) {
    test(`the same name ${what} is the same name, and goes on in canonical form`, async () => {
      const wire = await inside(internet, gate, A);
      assert.equal(statusOf(await wire.send(head(...lines))), 200);
      const request = origins[0]?.requests.at(-1);
      assert.equal(request?.start, "GET / HTTP/1.1");
      assert.deepEqual(request?.fields[0], ["Host", A]);
      assert.equal(origins[0]?.connections.at(-1)?.servername, A);
    });
  }

  test("the second request of a connection is judged like the first", async () => {
    const wire = await inside(internet, gate, A);
    assert.equal(statusOf(await wire.send(head("GET / HTTP/1.1", `Host: ${A}`))), 200);
    const before = requestsSeen();
    assertRefused(await wire.send(head("GET / HTTP/1.1", `Host: ${B}`)), DISAGREE);
    await wire.closed();
    assert.equal(requestsSeen(), before);
  });

  for (const [host, sni] of [
    [A, B],
    [B, A],
    [A, "evil.example.com"],
  ] as const) {
    test(`a server name ${sni} in a CONNECT to ${host} is 421, whichever of them Host agrees with`, async () => {
      const before = requestsSeen();
      for (const name of [host, sni]) {
        const wire = await dialThrough(internet, `${host}:443`, { ca: gate.ca, servername: sni });
        assertRefused(await wire.send(head("GET / HTTP/1.1", `Host: ${name}`)), DISAGREE);
      }
      assert.equal(requestsSeen(), before);
    });
  }
});

describe("a tunnel", () => {
  for (const servername of ["evil.example.com", B, A]) {
    test(`whose server name is ${servername} instead is broken off, and its upstream gets no byte`, async () => {
      const unheard = origins.map(({ connections }) => connections.length);
      await assert.rejects(
        dialThrough(internet, `${TUNNEL}:443`, { ca: internet.authority.certPem, servername }),
      );
      assert.equal((await gate.record({ host: TUNNEL }))["reason"], "names-disagree");
      // It was dialled before the client was told to go on: a refusal of its address would have been readable.
      const dialled = origins.flatMap(({ connections }, index) => connections.slice(unheard[index]));
      for (const { received } of dialled) assert.equal(received, "");
    });
  }
});

const target = `GET http://${TUNNEL}/ HTTP/1.1`;
const PLAIN = [
  ["whose Host is another listed one", head(target, `Host: ${B}`), DISAGREE],
  ["whose Host is unlisted", head(target, "Host: evil.example.com"), DISAGREE],
  ["whose Host has another port", head(target, `Host: ${TUNNEL}:8080`), DISAGREE],
  [
    "for https, which would be a silent downgrade",
    head(`GET https://${TUNNEL}/ HTTP/1.1`, `Host: ${TUNNEL}`),
    400,
  ],
  ["with two Host fields", head(target, `Host: ${TUNNEL}`, `Host: ${TUNNEL}`), 400],
  ["with an empty Host", head(target, "Host:"), 400],
  ["with two names in Host", head(target, `Host: ${TUNNEL}, ${B}`), 400],
  ["with two words in Host", head(target, `Host: ${TUNNEL} ${B}`), 400],
  ["with user information in Host", head(target, `Host: ${TUNNEL}@evil.example.com`), 400],
  [
    "with user information in its target",
    head(`GET http://${TUNNEL}@evil.example.com/ HTTP/1.1`, "Host: evil.example.com"),
    400,
  ],
  ["without Host", head(target), 400],
  ["in origin-form", head("GET / HTTP/1.1", `Host: ${TUNNEL}`), 400],
  ["for another scheme", head(`GET ftp://${TUNNEL}/ HTTP/1.1`, `Host: ${TUNNEL}`), 400],
  ["for a WebSocket scheme", head(`GET ws://${TUNNEL}/ HTTP/1.1`, `Host: ${TUNNEL}`), 400],
  ["with a NUL in its name", head(`GET http://evil.com\0.${TUNNEL}/ HTTP/1.1`, `Host: ${TUNNEL}`), 400],
  ["with an escape in its name", head(`GET http://tunnel%2eexample.com/ HTTP/1.1`, `Host: ${TUNNEL}`), 400],
  [
    "with full-width letters in its name",
    head("GET http://tunnel\xef\xbc\x8eexample.com/ HTTP/1.1", `Host: ${TUNNEL}`),
    400,
  ],
  [
    "with an empty label in its name",
    head(`GET http://tunnel..example.com/ HTTP/1.1`, "Host: tunnel..example.com"),
    400,
  ],
  ["with nothing but an at sign for a host", head("GET http://@/ HTTP/1.1", "Host: a"), 400],
  ["with no host at all", head("GET http:///x HTTP/1.1", "Host: a"), 400],
] as const;

describe("a plain request", () => {
  for (const [what, bytes, expected] of PLAIN) {
    test(`${what} is refused, and no origin hears of it`, async () => {
      const before = origins.map(({ connections }) => connections.length);
      const wire = await dial(internet);
      const answer = await wire.send(bytes);
      if (expected === 400) assert.equal(statusOf(answer), 400, answer.head);
      else assertRefused(answer, expected);
      await wire.closed();
      assert.equal(wire.received, "");
      assert.deepEqual(
        origins.map(({ connections }) => connections.length),
        before,
      );
    });
  }
});

describe("CONNECT", () => {
  for (const [target, host, expected] of [
    [`${A}:443`, B, DISAGREE],
    [`${A}:443`, `${A}:444`, DISAGREE],
    [A, A, 400],
    [`${A}:0`, `${A}:0`, 400],
    [`${A}:99999`, `${A}:99999`, 400],
    [`${A}:443/`, A, 400],
    ["/etc", A, 400],
    [`user@${A}:443`, A, 400],
    [`evil.com%00.${A}:443`, A, 400],
    [`[fe80::1%25eth0]:443`, "[fe80::1%25eth0]", 400],
    ["0177.0.0.1:443", "0177.0.0.1", 400],
    [`http://${A}:443`, A, 400],
  ] as const) {
    test(`to ${target} with Host ${host} gets ${expected === 400 ? 400 : 421}`, async () => {
      const answer = await askPlain(internet, head(`CONNECT ${target} HTTP/1.1`, `Host: ${host}`));
      if (expected === 400) assert.equal(statusOf(answer), 400, answer.head);
      else assertRefused(answer, expected);
    });
  }
});
