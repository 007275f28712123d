/** The `approvals` section: every key, its default, and what is said where it is wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";

test("readApprovals: a client waits five minutes, unless the file says otherwise", () => {
  assert.deepEqual(configOf(HEAD).policy.approvals, { possible: false, timeout: 300_000, wait: true });
  const { approvals } = configOf(`${HEAD}approvals: { timeout: 30s, wait: false }\n`).policy;
  assert.deepEqual(approvals, { possible: false, timeout: 30_000, wait: false });
});

testProblems("readApprovals", `${HEAD}approvals:`, [
  ["an empty one is fine", "\n"],
  ["no map", " x\n", "3:12 `approvals` must be a map of keys and values, found text"],
  [
    "a time that is too short",
    " { timeout: 1ms }\n",
    "3:23 `timeout` must be a time from 1s to 1d, such as `10s`",
  ],
  ["no flag", " { wait: 1 }\n", "3:20 `wait` must be true or false, found a number"],
]);

test("readApprovals: a webhook can give the word, and its secret is known by a key", () => {
  const { policy, templates } = configOf(
    `${HEAD}approvals: { webhook: { url: "https://ask.example/x?y", secret: "${"$"}{env:HOOK_SECRET}", timeout: 1m } }\n`,
  );
  const { possible, webhook } = policy.approvals;
  assert.equal(possible, true);
  assert.deepEqual(webhook, {
    endpoint: {
      kind: "http",
      scheme: "https",
      destination: { kind: "name", host: "ask.example", port: 443 },
      target: "/x?y",
    },
    secret: "approvals.webhook.secret",
    timeout: 60_000,
  });
  assert.deepEqual(templates.get("approvals.webhook.secret"), [{ kind: "env", name: "HOOK_SECRET" }]);
});

test("readApprovals: a webhook on this machine, with the defaults", () => {
  const { webhook } = configOf(`${HEAD}approvals: { webhook: { url: "http://127.0.0.1:9000/" } }\n`).policy
    .approvals;
  assert.deepEqual([webhook?.secret, webhook?.timeout], [undefined, 10_000]);
});

testProblems("readWebhook", `${HEAD}approvals: { webhook:`, [
  ["none", " }\n"],
  ["no map", " x }\n", "3:23 `webhook` must be a map of keys and values, found text"],
  ["an empty one", " {} }\n", "3:23 `url` is missing here"],
  [
    "no URL, and a time that is too short",
    " { url: x, timeout: 1ms } }\n",
    "3:30 `url` must begin with `http://` or `https://` and a host, without user, password or fragment",
    "3:42 `timeout` must be a time from 100ms to 1h, such as `10s`",
  ],
  [
    "clear text to another machine",
    ' { url: "http://ask.example/" } }\n',
    "3:30 A webhook gives approval, so off this machine its `url` must be `https://`",
  ],
  [
    "a secret that is written out",
    ' { url: "https://ask.example/", secret: abcdefghijklmnop } }\n',
    `3:62 warning: \`secret\` is a secret written out; use \`${"$"}{env:NAME}\` or \`${"$"}{file:PATH}\``,
  ],
]);

testProblems("checkApprovers", "version: 1\n", [
  [
    "an entry to approve, and nobody who can",
    "network: { allowlist: [{ domain: a.example, approve: true }] }\n",
    "1:1 warning: Entries have `approve: true`, and nobody can: `listen.admin` has no `token`, and there is no webhook",
  ],
  [
    "an entry to approve, and a token",
    `network: { allowlist: [{ domain: a.example, approve: true }] }\nlisten: { proxy: 127.0.0.1:8080, admin: { address: 127.0.0.1:9464, token: "${"$"}{env:TOKEN}" } }\n`,
  ],
  [
    "an entry to approve, and a webhook",
    'network: { allowlist: [{ domain: a.example, approve: true }] }\napprovals: { webhook: { url: "https://ask.example/" } }\n',
  ],
]);
