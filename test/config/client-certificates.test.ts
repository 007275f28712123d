/** Client certificates: what each needs, and entries that name them. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const ONE = '{ id: a, cert: "${file:/a.pem}", key: "${file:/a.key}", passphrase: "${env:P}" }';

test("readClientCertificates: an entry names one, whose parts are filed under its id", () => {
  const { policy, templates, certificates } = configOf(
    `version: 1\nupstream: { client_certificates: [ ${ONE} ] }\nnetwork: { allowlist: [ { domain: a.example, client_certificate: a } ] }\n`,
  );
  assert.equal(policy.network.kind, "allowlist");
  assert.equal(policy.network.rules[0]?.certificate, "a");
  assert.deepEqual([...certificates.keys()], ["a"]);
  assert.deepEqual(templates.get("upstream.client_certificates.a.key"), [
    { kind: "file", path: "/a.key", lines: true },
  ]);
  assert.deepEqual(templates.get("upstream.client_certificates.a.passphrase"), [{ kind: "env", name: "P" }]);
});

testProblems(
  "readClientCertificates",
  "version: 1\nnetwork: { allowlist: [ { domain: a.example } ] }\nupstream:\n  client_certificates:",
  [
    ["none at all is fine", " []\n"],
    ["an empty section is fine", "\n"],
    ["no list", " { id: a }\n", "4:24 `client_certificates` must be a list, found a map"],
    [
      "one that is no map",
      " [a]\n",
      "4:25 A client certificate must be a map of keys and values, found text",
    ],
    [
      "nothing in it",
      " [ {} ]\n",
      "4:26 A client certificate needs its `id`",
      "4:26 A client certificate needs its `cert`",
      "4:26 A client certificate needs its `key`",
    ],
    ["one id twice", ` [ ${ONE}, ${ONE} ]\n`, "4:108 The id `a` is taken by the certificate on line 4"],
    [
      "a key written out",
      ' [ { id: a, cert: "${file:/a.pem}", key: abcdefghijkl } ]\n',
      "4:64 warning: `key` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
    ],
  ],
);

testProblems(
  "useClientCertificate",
  `version: 1\nupstream: { client_certificates: [ ${ONE} ] }\nnetwork:\n  allowlist:\n`,
  [
    ["of an entry", "    - { domain: a.example, client_certificate: a }\n"],
    [
      "an id that is none",
      "    - { domain: a.example, client_certificate: b }\n",
      "5:48 No client certificate has the id `b`; did you mean `a`?",
    ],
    [
      "an id that is far from any",
      "    - { domain: a.example, client_certificate: zzzzzz }\n",
      "5:48 No client certificate has the id `zzzzzz`",
    ],
    [
      "no text",
      "    - { domain: a.example, client_certificate: [] }\n",
      "5:48 `client_certificate` must be text, found a list",
    ],
    [
      "of a wildcard that strangers share",
      '    - { domain: "*.github.io", client_certificate: a }\n',
      "5:32 `*.github.io` cannot inject: strangers can own names under `github.io`; name the hosts, or write `outsiders: accept`",
    ],
    [
      "under never",
      "    - { domain: a.example, intercept: never, client_certificate: a }\n",
      "5:46 `client_certificate` needs the inside of TLS, and `intercept: never` keeps it shut",
    ],
  ],
);
