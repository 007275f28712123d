import assert from "node:assert/strict";
import { test } from "node:test";
import { viewSecrets } from "../../src/cli/explain-secrets.ts";
import { loadConfigText } from "../../src/config/load.ts";
import { decideExchange } from "../../src/decide/decide-exchange.ts";
import { compilePolicy } from "../../src/decide/policy.ts";
import type { Permit } from "../../src/model/decision.ts";
import { ask } from "../decide/build.ts";

const CONFIG = `version: 1
network:
  allowlist:
    - { domain: plain.example.com, transform: { A: "\${env:A}", B: "\${env:A}" } }
    - { domain: token.example.com, credential: minted }
    - { domain: vault.example.com, transform: { A: "\${vault:secret/a#b}" } }
    - { domain: signed.example.com, credential: aws }
    - { domain: pair.example.com, client_certificate: pair }
    - { domain: placed.example.com }
credentials:
  - { id: minted, type: oauth2, client_id: me, client_secret: "\${env:CLIENT}", token_url: "https://auth.example.net/t" }
  - { id: aws, type: aws_sigv4, access_key_id: "\${env:KEY_ID}", secret_access_key: "\${env:KEY}", region: a, service: b }
  - { id: ph, type: environment_variable, value: "\${env:PH}", trusted_domains: [placed.example.com] }
vault: { address: "https://vault.example.net", token: "\${env:VAULT}" }
upstream:
  client_certificates:
    - { id: pair, cert: "\${env:CERT}", key: "\${env:CERT_KEY}" }
  proxy: { url: "http://corp-proxy:3128", auth: "\${env:CORP}", no_proxy: ["*.example.com"] }
`;

function look(host: string, env: Readonly<Record<string, string>>, text = CONFIG) {
  const loaded = loadConfigText(text, "/etc/c.yaml", 1);
  assert.ok(loaded.ok, JSON.stringify(loaded.ok || loaded.problems));
  const policy = compilePolicy(loaded.config.policy);
  const decision = decideExchange(ask(`https://${host}/`), policy);
  assert.ok(decision.verdict === "allow");
  return { view: viewSecrets(loaded.config, policy, env), permit: decision.permit as Permit };
}

function missing(host: string, env: Readonly<Record<string, string>>, text?: string): readonly string[] {
  const { view, permit } = look(host, env, text);
  return view.missing(permit);
}

const unset = (name: string): string => `Environment variable \`${name}\` is not set`;

test("viewSecrets: what an entry injects is missing once, however often it is named", () => {
  assert.deepEqual(missing("plain.example.com", {}), [unset("A")]);
  assert.deepEqual(missing("plain.example.com", { A: "x" }), []);
});

test("viewSecrets: a token is missing where what it is asked for with is, and is not asked for", () => {
  assert.deepEqual(missing("token.example.com", {}), [unset("CLIENT")]);
  const { view, permit } = look("token.example.com", { CLIENT: "x" });
  assert.deepEqual(view.missing(permit), []);
  assert.deepEqual(view.notes(permit, true), [
    "What commands, vaults and token endpoints give is not asked for here",
  ]);
  assert.deepEqual(missing("vault.example.com", {}), [unset("VAULT")]);
  assert.deepEqual(missing("vault.example.com", { VAULT: "x" }), []);
});

test("viewSecrets: a signature needs both of its keys", () => {
  assert.deepEqual(missing("signed.example.com", {}), [unset("KEY_ID"), unset("KEY")]);
  assert.deepEqual(missing("signed.example.com", { KEY_ID: "x", KEY: "y" }), []);
});

test("viewSecrets: a client certificate that is missing, or is no pair", () => {
  assert.deepEqual(missing("pair.example.com", {}), [unset("CERT"), unset("CERT_KEY")]);
  assert.deepEqual(missing("pair.example.com", { CERT: "x", CERT_KEY: "y" }), [
    "Certificate and key of client certificate `pair` are no pair that can be used",
  ]);
});

test("viewSecrets: the parent proxy's password, for what leaves by it alone", () => {
  const byParent = CONFIG.replace(', no_proxy: ["*.example.com"]', "");
  assert.deepEqual(missing("placed.example.com", {}, byParent), [unset("CORP")]);
  assert.deepEqual(missing("placed.example.com", {}), []);
});

test("viewSecrets: a placeholder that cannot be replaced is a note where requests are seen", () => {
  const { view, permit } = look("placed.example.com", {});
  assert.deepEqual(view.missing(permit), []);
  assert.deepEqual(view.notes(permit, true), [`__SALLYPORT_CRED_ph__ cannot be replaced: ${unset("PH")}`]);
  assert.deepEqual(view.notes(permit, false), []);
});
