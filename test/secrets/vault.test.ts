/** What is asked of a vault, and each answer that is none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { VaultSource } from "../../src/model/credential.ts";
import type { Hostname } from "../../src/model/exchange.ts";
import { createVaultReader, type VaultOrder, type VaultPart } from "../../src/secrets/vault.ts";

const VAULT: VaultSource = {
  endpoint: {
    scheme: "https",
    destination: { kind: "name", host: "vault.example" as Hostname, port: 8200 },
    target: "/base",
  },
  token: "vault.token",
  namespace: undefined,
};
const PART: VaultPart = { kind: "vault", mount: "secret", path: "team/api", field: "token" };

function readerOf(status: number, answer: unknown) {
  const orders: VaultOrder[] = [];
  const text = typeof answer === "string" ? answer : JSON.stringify(answer);
  const reader = createVaultReader({
    secret: (key) => `value of ${key}`,
    get: async (order) => {
      orders.push(order);
      return { status, text };
    },
  });
  return { orders, reader };
}

function inVault(data: unknown): unknown {
  return { data: { data, metadata: { version: 3 } } };
}

test("read: the path of KV version 2, the token, the namespace", async () => {
  const { orders, reader } = readerOf(200, inVault({ token: "kept-in-vault\n" }));
  assert.equal(await reader.read({ ...VAULT, namespace: "team" }, PART), "kept-in-vault");
  assert.equal(orders[0]?.endpoint.target, "/base/v1/secret/data/team/api");
  assert.deepEqual(orders[0].fields, [
    ["X-Vault-Token", "value of vault.token"],
    ["X-Vault-Request", "true"],
    ["X-Vault-Namespace", "team"],
  ]);
});

test("read: fields of one secret that are wanted at once come with one call, and later ones with another", async () => {
  const { orders, reader } = readerOf(200, inVault({ user: "ada", token: "t" }));
  const both = [reader.read(VAULT, PART), reader.read(VAULT, { ...PART, field: "user" })];
  assert.deepEqual(await Promise.all(both), ["t", "ada"]);
  assert.equal(orders.length, 1);
  await reader.read(VAULT, PART);
  assert.equal(orders.length, 2);
});

test("read: a key file keeps its line breaks where one is asked for", async () => {
  const { reader } = readerOf(200, inVault({ token: "one\ntwo\n" }));
  assert.equal(await reader.read(VAULT, { ...PART, lines: true }), "one\ntwo");
  await assert.rejects(reader.read(VAULT, PART), /field `token` holds a line break/);
});

const NOT_KV2 = /not one of KV version 2/;
for (const [name, status, answer, problem] of [
  ["refused", 403, { errors: ["permission denied for s.secret"] }, /^Error: The vault answered with 403$/],
  ["a redirect", 307, "", /answered with 307/],
  ["deleted", 404, { data: { data: null } }, /no such secret, or its version was deleted/],
  ["garbage", 200, "<html>", NOT_KV2],
  ["KV version 1", 200, { data: { token: "t" } }, NOT_KV2],
  ["null", 200, "null", NOT_KV2],
  ["no data", 200, { data: { data: null } }, NOT_KV2],
  ["another field", 200, inVault({ other: "t" }), /no text in its field `token`/],
  ["a number", 200, inVault({ token: 7 }), /no text in its field `token`/],
  ["what every object has", 200, inVault({}), /no text in its field `token`/],
  ["empty", 200, inVault({ token: "" }), /field `token` is empty/],
  ["too long", 200, inVault({ token: "x".repeat(16_385) }), /longer than 16 KiB/],
  ["CR LF", 200, inVault({ token: "a\r\nX: y" }), /holds a line break/],
] as const) {
  test(`read: ${name}`, async () => {
    await assert.rejects(readerOf(status, answer).reader.read(VAULT, PART), (error) => {
      assert.match(String(error), problem);
      assert.doesNotMatch(String(error), /s\.secret|html/);
      return true;
    });
  });
}

test("read: without a token nothing is asked", async () => {
  const reader = createVaultReader({
    secret: () => {
      throw new Error("Environment variable `T` is not set");
    },
    get: () => assert.fail("asked"),
  });
  await assert.rejects(reader.read(VAULT, PART), /`T` is not set/);
});
