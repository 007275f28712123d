/** What each kind of token is asked for with. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import type { Hostname } from "../../src/model/exchange.ts";
import { type Minting, mint, type TokenOrder } from "../../src/secrets/mint.ts";

const ENDPOINT = {
  scheme: "https",
  destination: { kind: "name", host: "auth.example.com" as Hostname, port: 8443 },
  target: "/t",
} as const;
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const EPOCH = 1_700_000_000;

function harness(text: string, status = 200, secrets: Readonly<Record<string, string>> = {}) {
  const orders: TokenOrder[] = [];
  const rotated: string[] = [];
  const minting: Minting = {
    post: async (order) => {
      orders.push(order);
      return { status, text };
    },
    secret: (key) => secrets[key] ?? `value of ${key}`,
    refreshToken: () => "refresh",
    rotated: (_, token) => void rotated.push(token),
    epoch: () => EPOCH,
  };
  return { orders, rotated, minting };
}

const CLIENT = { kind: "oauth2", id: "o", endpoint: ENDPOINT, clientId: "id", scopes: [] } as const;

test("mint: oauth2 with a public client and a refresh token, which is rotated", async () => {
  const { orders, rotated, minting } = harness('{"access_token":"t","expires_in":9,"refresh_token":"next"}');
  const source = { ...CLIENT, clientSecret: undefined, refreshToken: "r", style: "basic" } as const;
  assert.deepEqual(await mint(source, minting), { value: "t", lifetime: 9_000 });
  assert.equal(orders[0]?.body, "grant_type=refresh_token&refresh_token=refresh&client_id=value+of+id");
  assert.deepEqual(rotated, ["next"]);
});

test("mint: oauth2 with the client's own credentials, in the form or in the head", async () => {
  const { orders, minting } = harness('{"access_token":"t"}');
  const source = { ...CLIENT, clientSecret: "s", refreshToken: undefined } as const;
  await mint({ ...source, style: "body" }, minting);
  await mint({ ...source, style: "basic" }, minting);
  assert.equal(
    orders[0]?.body,
    "grant_type=client_credentials&client_id=value+of+id&client_secret=value+of+s",
  );
  assert.equal(orders[1]?.body, "grant_type=client_credentials");
  assert.equal(orders[1].fields.length, 2);
});

const APP = {
  kind: "github_app",
  id: "g",
  endpoint: ENDPOINT,
  appId: "1",
  privateKey: "pem",
  permissions: undefined,
  repositories: ["r"],
} as const;

test("mint: github_app takes the token's own end, an hour where there is none, and no other status", async () => {
  const ends = new Date((EPOCH + 60) * 1_000).toISOString();
  const mintWith = (text: string, status = 201) => mint(APP, harness(text, status, { pem: PEM }).minting);
  assert.deepEqual(await mintWith(`{"token":"t","expires_at":"${ends}"}`), { value: "t", lifetime: 60_000 });
  assert.equal((await mintWith('{"token":"t"}')).lifetime, 3_600_000);
  await assert.rejects(mintWith('{"token":"t","expires_at":"2001-01-01T00:00:00Z"}'), /expired already/);
  await assert.rejects(mintWith("{}", 404), /GitHub answered with 404/);
});

test("mint: gcp_service_account asks for an ID token by audience, and refuses a key for elsewhere", async () => {
  const key = {
    client_email: "e",
    private_key: PEM,
    private_key_id: "k",
    token_uri: "https://auth.example.com:8443/t",
  };
  const source = {
    kind: "gcp_service_account",
    id: "c",
    endpoint: ENDPOINT,
    key: "key",
    scopes: [],
    audience: "a",
  } as const;
  const mintWith = (text: object, from: typeof source = source) =>
    mint(from, harness('{"id_token":"i"}', 200, { key: JSON.stringify(text) }).minting);
  assert.equal((await mintWith(key)).value, "i");
  await assert.rejects(mintWith({ ...key, token_uri: "https://evil.example/" }), /for another `token_url`/);
  await assert.rejects(mintWith({}), /not the JSON key file/);
});
