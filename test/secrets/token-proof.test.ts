import assert from "node:assert/strict";
import { test } from "node:test";
import type { Template } from "../../src/model/config.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { proofHolds, proofOf } from "../../src/secrets/token-proof.ts";

function secretsOf(text: string) {
  const templates = new Map<string, Template>([["token", [{ kind: "literal", text }]]]);
  return createSecrets(templates, { env: {}, now: () => 0 });
}

test("proofOf keeps nothing of a token but a digest, and has none of a wrong one", () => {
  const proof = proofOf(secretsOf("right"), "token", "right");
  assert.match(proof ?? "", /^[A-Za-z0-9+/]{43}=$/);
  assert.equal(proofOf(secretsOf("right"), "token", "wrong"), undefined);
  assert.equal(proofOf(secretsOf("right"), "absent", "right"), undefined);
});

test("proofHolds until the token is another one, or cannot be had", () => {
  const proof = proofOf(secretsOf("right"), "token", "right") ?? "";
  assert.equal(proofHolds(secretsOf("right"), "token", proof), true);
  assert.equal(proofHolds(secretsOf("changed"), "token", proof), false);
  assert.equal(proofHolds(secretsOf("right"), "absent", proof), false);
});
