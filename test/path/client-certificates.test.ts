/** An upstream that asks for a client certificate is shown the entry's, and no other; the sandbox holds none. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askInside, askPlain, head } from "../support/ask.ts";
import { fromFile, type Gate, startGate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import { startNginx } from "../support/nginx.ts";
import { createAuthority } from "../support/pki.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../support/private-internet.ts";
import { curl } from "../support/programs.ts";
import { assertRefused } from "../support/refusal.ts";

const ALICE = "alice.example.com";
const BOB = "bob.example.com";
const NOBODY = "nobody.example.com";
const MISSING = "missing.example.com";
const MIXED = "mixed.example.com";
const HOSTS = [ALICE, BOB, NOBODY, MISSING, MIXED];

let internet: Internet;
let gate: Gate;
const clients = createAuthority("Clients of the test");
const [alice, bob, heir] = ["alice", "bob", "heir"].map((commonName) =>
  clients.issue({ commonName, forClient: true }),
);

before(async () => {
  assert.ok(alice && bob);
  internet = await createInternet();
  for (const name of HOSTS) internet.dns.set(name, { A: [PUBLIC_V4] });
  await startServer();
  gate = await startGate(
    internet,
    {
      upstream: {
        client_certificates: [
          { id: "alice", cert: fromFile("alice.pem"), key: fromFile("alice.key") },
          { id: "bob", cert: fromFile("bob.pem"), key: fromFile("bob.key") },
          { id: "missing", cert: fromFile("absent.pem"), key: fromFile("absent.key") },
          { id: "mixed", cert: fromFile("alice.pem"), key: fromFile("bob.key") },
        ],
      },
      network: {
        allowlist: [
          { domain: ALICE, client_certificate: "alice" },
          { domain: BOB, paths: ["/bob"], client_certificate: "bob" },
          { domain: BOB, paths: ["/alice"], client_certificate: "alice" },
          { domain: NOBODY, intercept: "always" },
          { domain: MISSING, client_certificate: "missing" },
          { domain: MIXED, client_certificate: "mixed" },
        ],
      },
    },
    {
      files: {
        "alice.pem": alice.certPem,
        "alice.key": alice.keyPem,
        "bob.pem": bob.certPem,
        "bob.key": bob.keyPem,
      },
    },
  );
});
after(() => internet.close());

async function startServer(): Promise<void> {
  const directory = join(internet.directory, "nginx");
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "clients.pem"), clients.certPem);
  const http = `
  ssl_client_certificate clients.pem; ssl_verify_client on;
  server {
    listen ${PUBLIC_V4}:443 ssl http2;
    location / { return 200 "$ssl_client_s_dn $server_protocol\\n"; }
  }`;
  await startNginx(internet, { directory, hosts: HOSTS, address: PUBLIC_V4, http });
}

async function shown(host: string, path: string): Promise<string> {
  const answer = await askInside(internet, gate, host, head(`GET ${path} HTTP/1.1`, `Host: ${host}`));
  return `${statusOf(answer)} ${answer.body.trim()}`;
}

describe("an entry with a client certificate", () => {
  test("shows it to the upstream", async () => {
    assert.equal(await shown(ALICE, "/"), "200 CN=alice HTTP/1.1");
    const record = await gate.record({ host: ALICE });
    assert.equal(record["verdict"], "allow");
  });

  test("shows it over HTTP/2 as well", async () => {
    const { stdout, stderr } = await curl(internet, gate.caPem, "--http2", `https://${ALICE}/`);
    assert.equal(stdout.trim(), "CN=alice HTTP/2.0", stderr);
  });

  test("has connections of its own: two entries of one host are two clients", async () => {
    for (let round = 0; round < 3; round++) {
      assert.equal(await shown(BOB, "/bob"), "200 CN=bob HTTP/1.1");
      assert.equal(await shown(BOB, "/alice"), "200 CN=alice HTTP/1.1");
    }
  });

  test("is refused over plain HTTP", async () => {
    const answer = await askPlain(internet, head(`GET http://${ALICE}/ HTTP/1.1`, `Host: ${ALICE}`));
    assertRefused(answer, { status: 403, reason: "plaintext-secret", host: ALICE, rule: ALICE });
  });

  for (const [what, host] of [
    ["whose files are missing", MISSING],
    ["whose key is another's", MIXED],
  ] as const) {
    test(`${what} is refused, and nothing leaves`, async () => {
      const answer = await askInside(internet, gate, host);
      assertRefused(answer, { status: 403, reason: "secret-unavailable", host, rule: host });
    });
  }

  test("takes up another when its files change", async () => {
    assert.ok(heir);
    const folder = dirname(gate.configFile);
    writeFileSync(join(folder, "bob.pem"), heir.certPem);
    writeFileSync(join(folder, "bob.key"), heir.keyPem);
    const end = Date.now() + 10_000;
    for (;;) {
      const said = await shown(BOB, "/bob");
      if (said === "200 CN=heir HTTP/1.1") break;
      assert.ok(Date.now() < end, said);
      await delay(100);
    }
  });
});

test("an entry without one shows none, though the upstream asks", async () => {
  const answer = await askInside(internet, gate, NOBODY);
  assert.equal(statusOf(answer), 400);
  assert.match(answer.body, /No required SSL certificate was sent/);
});
