/** Client certificates as their files hold them: a pair that belongs together, or none. */
import assert from "node:assert/strict";
import { createPrivateKey } from "node:crypto";
import { test } from "node:test";
import type { Template } from "../../src/model/config.ts";
import { readIdentity } from "../../src/secrets/client-identity.ts";
import { createSecrets, type Secrets } from "../../src/secrets/secrets.ts";
import { createAuthority } from "../support/pki.ts";

const authority = createAuthority("Clients");
const one = authority.issue({ commonName: "one", forClient: true });
const other = authority.issue({ commonName: "other", forClient: true });

function secretsOf(parts: Readonly<Record<string, string>>): Secrets {
  const templates = Object.keys(parts).map((name): [string, Template] => [
    `upstream.client_certificates.a.${name}`,
    [{ kind: "env", name, lines: true }],
  ]);
  return createSecrets(new Map(templates), { env: parts, now: () => 0 });
}

test("readIdentity: a pair, and the same object as long as it does not change", () => {
  const secrets = secretsOf({ cert: one.certPem, key: one.keyPem });
  const reading = readIdentity("a", secrets);
  assert.ok(reading.ok);
  assert.deepEqual(reading.identity, {
    cert: one.certPem,
    key: one.keyPem,
    passphrase: undefined,
  });
  const again = readIdentity("a", secrets);
  assert.ok(again.ok && again.identity === reading.identity);
});

test("readIdentity: a key behind a passphrase", () => {
  const key = createPrivateKey(one.keyPem)
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "open" })
    .toString();
  assert.equal(readIdentity("a", secretsOf({ cert: one.certPem, key, passphrase: "open" })).ok, true);
  assert.equal(readIdentity("a", secretsOf({ cert: one.certPem, key, passphrase: "shut" })).ok, false);
  assert.equal(readIdentity("a", secretsOf({ cert: one.certPem, key })).ok, false);
  assert.equal(readIdentity("a", secretsOf({ cert: one.certPem, key, passphrase: "" })).ok, false);
});

for (const [what, parts] of [
  ["another's key", { cert: one.certPem, key: other.keyPem }],
  ["no certificate", { cert: "nothing", key: one.keyPem }],
  ["no key", { cert: one.certPem, key: "nothing" }],
  ["nothing at all", { cert: "", key: "" }],
] as const) {
  test(`readIdentity: ${what} is none`, () => {
    assert.deepEqual(readIdentity("a", secretsOf(parts)), { ok: false });
  });
}

test("readIdentity: what has yet to be had is waited for", () => {
  const template: Template = [{ kind: "exec", command: ["/x"] }];
  const whenKnown = (): Promise<void> => Promise.resolve();
  const secrets = createSecrets(new Map([["upstream.client_certificates.a.cert", template]]), {
    env: {},
    now: () => 0,
    supply: () => () => ({ ok: false, problem: "not yet", whenKnown }),
  });
  const reading = readIdentity("a", secrets);
  assert.equal(!reading.ok && reading.wait, whenKnown);
});
