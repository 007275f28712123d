/** Tokens are got outside, once for all who wait, refreshed, kept from the sandbox; what cannot be had refuses its rule alone. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askConnect, askInside } from "../support/ask.ts";
import type { Gate } from "../support/gate.ts";
import { fromFile, SECRET, startGate } from "../support/gate.ts";
import type { Message } from "../support/message-reader.ts";
import { oneValue, statusOf, valuesOf } from "../support/message-reader.ts";
import type { Origin } from "../support/origin.ts";
import { createOrigin, respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";
import { assertRefused } from "../support/refusal.ts";

const API = "api.example.com";
const HOSTS = [
  API,
  "client.example.com",
  "down.example.com",
  "forge.example.com",
  "cloud.example.com",
  "exec.example.com",
  "basic.example.com",
];
const AUTH = "auth.example.com";
const AUTH_V4 = "11.0.0.20";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let auth: Origin;
let issued = 0;
const { privateKey, publicKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

function answer({ start, body }: Message): string {
  const path = start.split(" ")[1];
  if (path === "/down") return respond("{}", "503 Service Unavailable");
  if (path === "/app/installations/34/access_tokens") {
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    return respond(JSON.stringify({ token: "ghs_installation", expires_at: expires }), "201 Created");
  }
  issued += 1;
  if (path === "/form") return respond(`access_token=client-token-${issued}&expires_in=3600`);
  const rotated = body.includes("refresh_token") ? { refresh_token: `rotated-token-${issued}` } : {};
  return respond(JSON.stringify({ access_token: `access-token-${issued}`, expires_in: 4, ...rotated }));
}

function credentialsIn(directory: string): readonly object[] {
  return [
    {
      id: "api",
      type: "oauth2",
      client_id: "gate",
      client_secret: fromFile("client"),
      refresh_token: fromFile("refresh"),
      token_url: `https://${AUTH}/token`,
      scopes: ["a", "b"],
    },
    {
      id: "client",
      type: "oauth2",
      client_id: "gate",
      client_secret: SECRET,
      token_url: `https://${AUTH}/form`,
      client_auth: "body",
    },
    {
      id: "down",
      type: "oauth2",
      client_id: "gate",
      client_secret: SECRET,
      token_url: `https://${AUTH}/down`,
    },
    {
      id: "forge",
      type: "github_app",
      app_id: 12,
      installation_id: 34,
      private_key: fromFile("key.pem"),
      api_url: `https://${AUTH}/`,
      permissions: { contents: "read" },
    },
    {
      id: "cloud",
      type: "gcp_service_account",
      key: fromFile("account.json"),
      scopes: ["s"],
      token_url: `https://${AUTH}/gcp`,
    },
    {
      id: "exec",
      type: "bearer_token",
      token: `\${exec:/bin/cat ${join(directory, "printed")}}`,
      header_name: "X-Key",
      prefix: "",
    },
    { id: "basic", type: "basic", username: "ada", password: fromFile("client") },
  ];
}

before(async () => {
  internet = await createInternet();
  for (const name of HOSTS) internet.dns.set(name, { A: [PUBLIC_V4] });
  internet.dns.set(AUTH, { A: [AUTH_V4] });
  origin = await createOrigin(internet, { tls: HOSTS });
  auth = await createOrigin(internet, { address: AUTH_V4, tls: [AUTH], bound: true, answer });
  const account = {
    client_email: "robot@example.com",
    private_key: privateKey,
    token_uri: `https://${AUTH}/gcp`,
  };
  const credentials = credentialsIn(join(internet.directory, `gate-${internet.gate.pid}`));
  const allowlist = [
    ...HOSTS.map((domain) => ({ domain, credential: domain.split(".")[0] })),
    { domain: AUTH },
  ];
  gate = await startGate(
    internet,
    { network: { allowlist }, credentials },
    {
      files: {
        refresh: `${internet.canary.secret}\n`,
        client: "client secret:1",
        printed: "printed-secret\n",
        "key.pem": privateKey,
        "account.json": JSON.stringify(account),
      },
    },
  );
});
after(() => internet.close());

function lastAuthorization(): string | undefined {
  return oneValue(origin.requests.at(-1) ?? { fields: [] }, "authorization");
}

/** The claims, once openssl has verified the signature. */
function verified(jwt: string): Record<string, unknown> {
  const [header = "", claims = "", signature = ""] = jwt.split(".");
  const path = (name: string): string => join(internet.directory, name);
  writeFileSync(path("public.pem"), publicKey);
  writeFileSync(path("signed"), `${header}.${claims}`);
  writeFileSync(path("signature"), Buffer.from(signature, "base64url"));
  const said = execFileSync("openssl", [
    "dgst",
    "-sha256",
    "-verify",
    path("public.pem"),
    "-signature",
    path("signature"),
    path("signed"),
  ]);
  assert.match(said.toString(), /Verified OK/);
  assert.equal(JSON.parse(Buffer.from(header, "base64url").toString()).alg, "RS256");
  return JSON.parse(Buffer.from(claims, "base64url").toString());
}

function tokenCalls(path: string): readonly Message[] {
  return auth.requests.filter(({ start }) => start === `POST ${path} HTTP/1.1`);
}

describe("oauth2", () => {
  test("a hundred requests at once: one token call, and all of them have its token", async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => askInside(internet, gate, API)));
    assert.deepEqual(new Set(answers.map(statusOf)), new Set([200]));
    const [call, ...more] = tokenCalls("/token");
    assert.ok(call !== undefined && more.length === 0, `${more.length + 1} calls`);
    const sent = new URLSearchParams(call.body);
    assert.deepEqual([sent.get("grant_type"), sent.get("scope")], ["refresh_token", "a b"]);
    assert.equal(sent.get("refresh_token"), internet.canary.secret);
    const basic = Buffer.from("gate:client+secret%3A1").toString("base64");
    assert.deepEqual(valuesOf(call, "authorization"), [`Basic ${basic}`]);
    const seen = origin.requests.map((request) => valuesOf(request, "authorization"));
    assert.deepEqual(new Set(seen.flat()), new Set(["Bearer access-token-1"]));
  });

  test("its token is refreshed, with the refresh token that came in place of the first, which its file has", async () => {
    const file = join(dirname(gate.configFile), "refresh");
    assert.equal(readFileSync(file, "utf8"), "rotated-token-1\n");
    const end = Date.now() + 20_000;
    while (tokenCalls("/token").length < 2) {
      assert.ok(Date.now() < end, "not refreshed");
      await askInside(internet, gate, API);
      await delay(100);
    }
    const [, second] = tokenCalls("/token");
    assert.equal(new URLSearchParams(second?.body).get("refresh_token"), "rotated-token-1");
    while (lastAuthorization() === "Bearer access-token-1") {
      assert.ok(Date.now() < end, "still the first token");
      await askInside(internet, gate, API);
    }
  });

  test("without a refresh token the client asks for itself, and a form is an answer too", async () => {
    assert.equal(statusOf(await askInside(internet, gate, "client.example.com")), 200);
    assert.match(lastAuthorization() ?? "", /^Bearer client-token-\d+$/);
    const sent = new URLSearchParams(tokenCalls("/form")[0]?.body);
    assert.deepEqual([sent.get("grant_type"), sent.get("client_id")], ["client_credentials", "gate"]);
  });

  test("where the endpoint fails, its rule alone is refused, and it is not asked again at once", async () => {
    const sent = origin.requests.length;
    for (let times = 0; times < 3; times++) {
      const refused = await askInside(internet, gate, "down.example.com");
      assertRefused(refused, { status: 403, reason: "secret-unavailable", rule: "down.example.com" });
    }
    assert.ok(tokenCalls("/down").length <= 2);
    assert.equal(origin.requests.length, sent);
    assert.equal((await gate.metrics()).sum("sallyport_secrets_unavailable"), 1);
    assert.match((await gate.admin("/readyz")).body, /credentials\.down/);
    await gate.untilLogged(/credentials\.down.*503|503.*credentials\.down/);
    assert.equal(statusOf(await askInside(internet, gate, "client.example.com")), 200);
  });

  test("no sandbox reaches the token endpoint, whatever is listed", async () => {
    const refused = await askConnect(internet, `${AUTH}:443`);
    assertRefused(refused, { status: 403, reason: "address-not-public" });
  });
});

test("github_app: a token for a JWT that openssl verifies, which goes nowhere else", async () => {
  assert.equal(statusOf(await askInside(internet, gate, "forge.example.com")), 200);
  assert.equal(lastAuthorization(), "Bearer ghs_installation");
  const [call] = tokenCalls("/app/installations/34/access_tokens");
  assert.ok(call);
  const claims = verified((oneValue(call, "authorization") ?? "").replace("Bearer ", ""));
  assert.equal(claims["iss"], "12");
  assert.ok(Number(claims["exp"]) - Number(claims["iat"]) <= 600);
  assert.deepEqual(JSON.parse(call.body), { permissions: { contents: "read" } });
});

test("gcp_service_account: a token for an assertion that openssl verifies", async () => {
  assert.equal(statusOf(await askInside(internet, gate, "cloud.example.com")), 200);
  assert.match(lastAuthorization() ?? "", /^Bearer access-token-\d+$/);
  const sent = new URLSearchParams(tokenCalls("/gcp")[0]?.body);
  assert.equal(sent.get("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
  const claims = verified(sent.get("assertion") ?? "");
  assert.deepEqual(
    [claims["iss"], claims["scope"], claims["aud"]],
    ["robot@example.com", "s", `https://${AUTH}/gcp`],
  );
});

test("exec: what a program prints, there from the start", async () => {
  assert.equal(statusOf(await askInside(internet, gate, "exec.example.com")), 200);
  assert.equal(oneValue(origin.requests.at(-1) ?? { fields: [] }, "x-key"), "printed-secret");
});

test("basic: user and password", async () => {
  assert.equal(statusOf(await askInside(internet, gate, "basic.example.com")), 200);
  assert.equal(lastAuthorization(), `Basic ${Buffer.from("ada:client secret:1").toString("base64")}`);
});

test("no token, old or new, is on any output", () => {
  const said = JSON.stringify(gate.records) + gate.log;
  for (const secret of [
    "access-token-",
    "rotated-token-",
    "client-token-",
    "ghs_installation",
    "printed-secret",
  ]) {
    assert.ok(!said.includes(secret), secret);
  }
});
