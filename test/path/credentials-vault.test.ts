/** Secrets of a vault: had at the start, in their newest version, and where they cannot be had one rule is refused. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askConnect, askInside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const MAIN = join(import.meta.dirname, "../../src/start.mjs");
const VAULT = "vault.example.com";
const VAULT_V4 = "11.0.0.20";
const FIXED = "fixed.example.com";
const PAIR = "pair.example.com";
const BROKEN = ["denied", "deleted", "garbage", "slow", "field"] as const;
const HOSTS = [FIXED, PAIR, ...BROKEN.map((name) => `${name}.example.com`)];

let internet: Internet;
let gate: Gate;
let origin: Origin;
let vault: Origin;
/** What the vault holds now; undefined: it is sealed. */
let current: string | undefined = "first-in-vault";

/** GET /v1/MOUNT/data/PATH, as KV version 2 has it. */
function answer({ start, fields }: Message): string {
  if (oneValue({ fields }, "x-vault-token") !== internet.canary.secret) return failure("403 Forbidden");
  const path = start.split(" ")[1] ?? "";
  switch (path) {
    case "/v1/secret/data/team/api":
      return current === undefined ? failure("503 Service Unavailable") : secret({ token: current });
    case "/v1/secret/data/team/pair":
      return secret({ user: "ada", password: "both-of-one-version" });
    case "/v1/secret/data/deleted":
      return respond(JSON.stringify({ data: { data: null, metadata: { version: 2 } } }), "404 Not Found");
    case "/v1/secret/data/garbage":
      return respond("<html>leaked-by-vault</html>");
    case "/v1/secret/data/slow":
      return "";
    case "/v1/secret/data/field":
      return secret({ other: "leaked-by-vault" });
    default:
      return failure("403 Forbidden");
  }
}

function secret(data: object): string {
  return respond(JSON.stringify({ data: { data, metadata: { version: 1, destroyed: false } } }));
}

function failure(status: string): string {
  return respond(JSON.stringify({ errors: ["leaked-by-vault"] }), status);
}

function inVault(path: string): string {
  return `\${vault:secret/${path}}`;
}

before(async () => {
  internet = await createInternet();
  for (const name of HOSTS) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(VAULT, { A: [VAULT_V4] });
  origin = await createOrigin(internet, { tls: HOSTS });
  vault = await createOrigin(internet, { address: VAULT_V4, port: 8200, tls: [VAULT], bound: true, answer });
  const credentials = [
    { id: "fixed", type: "bearer_token", token: inVault("team/api#token") },
    {
      id: "pair",
      type: "basic",
      username: inVault("team/pair#user"),
      password: inVault("team/pair#password"),
    },
    ...BROKEN.map((id) => ({ id, type: "bearer_token", token: inVault(`${id}#token`) })),
  ];
  const allowlist = [
    ...HOSTS.map((domain) => ({ domain, credential: domain.split(".")[0] })),
    { domain: VAULT, ports: [8200] },
  ];
  gate = await startGate(internet, {
    network: { allowlist },
    credentials,
    vault: { address: `https://${VAULT}:8200`, token: SECRET, namespace: "team/a" },
    limits: { secret_ttl: "2s", secret_timeout: "500ms" },
  });
});
after(() => internet.close());

function lastAuthorization(): string | undefined {
  return oneValue(origin.requests.at(-1) ?? { fields: [] }, "authorization");
}

function callsFor(path: string): readonly Message[] {
  return vault.requests.filter(({ start }) => start === `GET /v1/secret/data/${path} HTTP/1.1`);
}

/** Asks until it is so. */
async function until(what: string, host: string, holds: (status: number) => boolean): Promise<void> {
  const end = Date.now() + 30_000;
  while (!holds(statusOf(await askInside(internet, gate, host)))) {
    assert.ok(Date.now() < end, what);
    await delay(100);
  }
}

test("a secret is asked for at the start, with the token and the namespace", async () => {
  await until("not had", FIXED, (status) => status === 200);
  assert.equal(lastAuthorization(), "Bearer first-in-vault");
  const [call] = callsFor("team/api");
  assert.ok(call);
  assert.equal(oneValue(call, "x-vault-token"), internet.canary.secret);
  assert.equal(oneValue(call, "x-vault-namespace"), "team/a");
  assert.equal(oneValue(call, "host"), `${VAULT}:8200`);
});

test("a user and a password come with one call", async () => {
  await until("not had", PAIR, (status) => status === 200);
  const pair = Buffer.from("ada:both-of-one-version").toString("base64");
  assert.equal(lastAuthorization(), `Basic ${pair}`);
});

test("what cannot be had refuses its rule alone, is told of, and not asked for again at once", async () => {
  for (const name of BROKEN) {
    const sent = origin.requests.length;
    const refused = await askInside(internet, gate, `${name}.example.com`);
    assertRefused(refused, { status: 403, reason: "secret-unavailable", rule: `${name}.example.com` });
    assert.equal(origin.requests.length, sent);
    assert.match((await gate.admin("/readyz")).body, new RegExp(`credentials\\.${name}`));
  }
  assert.equal((await gate.metrics()).sum("sallyport_secrets_unavailable"), BROKEN.length);
  const asked = callsFor("denied").length;
  for (let times = 0; times < 5; times++) await askInside(internet, gate, "denied.example.com");
  assert.ok(callsFor("denied").length <= asked + 1);
  await gate.untilLogged(/vault:secret\/denied#token.*403/);
  await gate.untilLogged(/vault:secret\/deleted#token.*version was deleted/);
  await gate.untilLogged(/vault:secret\/garbage#token.*KV version 2/);
  await gate.untilLogged(/vault:secret\/slow#token/);
  await gate.untilLogged(/vault:secret\/field#token.*no text in its field/);
  await until("refused with the others", FIXED, (status) => status === 200);
});

test("a new version is taken up", async () => {
  current = "second-in-vault";
  await until("still the first", FIXED, () => lastAuthorization() === "Bearer second-in-vault");
});

test("a sealed vault: what was had is used for as long as it is good, and again once it is had again", async () => {
  current = undefined;
  await until("still allowed", FIXED, (status) => status === 403);
  current = "third-in-vault";
  await until("still refused", FIXED, (status) => status === 200);
  assert.equal(lastAuthorization(), "Bearer third-in-vault");
});

test("no sandbox reaches the vault, whatever is listed", async () => {
  const refused = await askConnect(internet, `${VAULT}:8200`);
  assertRefused(refused, { status: 403, reason: "address-not-public" });
});

test("check asks the vault for nothing", async () => {
  await gate.stop();
  const asked = vault.requests.length;
  const child = internet.gate.spawn([process.execPath, MAIN, "check", gate.configFile], {
    env: { PATH: process.env["PATH"], SECRET: internet.canary.secret },
    stdio: "ignore",
  });
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
  assert.equal(vault.requests.length, asked);
});

test("nothing of the vault is on any output", () => {
  const said = JSON.stringify(gate.records) + gate.log;
  for (const word of ["-in-vault", "both-of-one-version", "leaked-by-vault"])
    assert.ok(!said.includes(word), word);
  internet.canary.assertUnseen();
});
