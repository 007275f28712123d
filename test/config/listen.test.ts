/** The doors: defaults, forms, and warnings of open ones. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
const ADMIN = { host: "127.0.0.1", port: 9464, token: undefined };

test("readListen: without the section both doors stand on loopback", () => {
  assert.deepEqual(configOf(HEAD).listen, {
    proxy: { host: "127.0.0.1", port: 8080 },
    admin: ADMIN,
    gateway: undefined,
    reverse: undefined,
  });
});

test("readListen: with the section those doors are opened that it names", () => {
  assert.deepEqual(configOf(`${HEAD}listen: { proxy: 127.0.0.1:0 }\n`).listen, {
    proxy: { host: "127.0.0.1", port: 0 },
    admin: undefined,
    gateway: undefined,
    reverse: undefined,
  });
});

test("readListen: a reverse door alone is a door", () => {
  assert.deepEqual(configOf(`${HEAD}listen: { reverse: "[::1]:8081" }\n`).listen, {
    proxy: undefined,
    admin: undefined,
    gateway: undefined,
    reverse: { host: "::1", port: 8081 },
  });
});

test("readListen: admin is an address, or an address and a token", () => {
  const config = configOf(
    `${HEAD}listen:\n  proxy: "[::1]:1"\n  admin: { address: "127.0.0.1:9464", token: "\${env:T}" }\n`,
  );
  assert.deepEqual(config.listen.admin, { ...ADMIN, token: "listen.admin.token" });
  assert.deepEqual(config.templates.get("listen.admin.token"), [{ kind: "env", name: "T" }]);
  assert.deepEqual(
    configOf(`${HEAD}listen: { proxy: 127.0.0.1:1, admin: 127.0.0.1:9464 }\n`).listen.admin,
    ADMIN,
  );
});

testProblems("readListen", HEAD, [
  [
    "an unknown door is refused",
    "listen: { proxy: 127.0.0.1:1, prox: 127.0.0.1:2 }\n",
    "3:31 Unknown key `prox`; did you mean `proxy`?",
  ],
  [
    "no door is an error",
    "listen: {}\n",
    "3:9 `listen` opens no door; name at least `proxy`, `gateway` or `reverse`",
  ],
  ["a list is no section", "listen: []\n", "3:9 `listen` must be a map of keys and values, found a list"],
  [
    "two doors at one place are refused",
    "listen: { proxy: 127.0.0.1:1, admin: 127.0.0.1:1 }\n",
    "3:31 `proxy` and `admin` cannot stand at the same address and port",
  ],
  [
    "a door at every address takes those of others",
    'listen: { proxy: 127.0.0.1:1, admin: { address: "[::]:1", token: "${env:T}" } }\n',
    "3:31 `proxy` and `admin` cannot stand at the same address and port",
  ],
  [
    "a reverse door beside another is refused",
    "listen: { proxy: 127.0.0.1:1, admin: 127.0.0.1:2, reverse: 127.0.0.1:2 }\n",
    "3:51 `admin` and `reverse` cannot stand at the same address and port",
  ],
  [
    "a reverse door for everyone gets a warning",
    "listen: { reverse: 0.0.0.0:1 }\n",
    "3:11 warning: Anyone who reaches this address may use the proxy, since `sandboxes` is empty",
  ],
  [
    "a bad reverse door is refused",
    "listen: { reverse: :8081 }\n",
    "3:20 `reverse` must be an address and a port; write `127.0.0.1:8081`, or `[::]:8081` for every address",
  ],
  ["port 0 is another one each time", "listen: { proxy: 127.0.0.1:0, admin: 127.0.0.1:0 }\n"],
  [
    "a proxy for everyone gets a warning",
    "listen: { proxy: 0.0.0.0:1 }\n",
    "3:11 warning: Anyone who reaches this address may use the proxy, since `sandboxes` is empty",
  ],
  ["a proxy on any loopback address gets none", "listen: { proxy: 127.0.0.2:1 }\n"],
  [
    "a proxy for sandboxes gets none",
    "listen: { proxy: 0.0.0.0:1 }\nsandboxes: [ { id: a, source: [10.0.0.1], network: disabled } ]\n",
  ],
  [
    "an open admin page gets a warning",
    "listen: { proxy: 127.0.0.1:1, admin: 0.0.0.0:2 }\n",
    "3:31 warning: `admin` is open to other machines without a `token`",
  ],
  [
    "one with a token gets none",
    'listen: { proxy: 127.0.0.1:1, admin: { address: 0.0.0.0:2, token: "${env:T}" } }\n',
  ],
  [
    "admin needs an address",
    'listen: { proxy: 127.0.0.1:1, admin: { token: "${env:T}" } }\n',
    "3:38 `admin` needs an `address`",
  ],
  [
    "admin knows two keys",
    "listen: { proxy: 127.0.0.1:1, admin: { adress: 127.0.0.1:2 } }\n",
    "3:38 `admin` needs an `address`",
    "3:40 Unknown key `adress`; did you mean `address`?",
  ],
  [
    "a bad token is refused, unquoted",
    'listen: { proxy: 127.0.0.1:1, admin: { address: 127.0.0.1:2, token: "abc\\ndef" } }\n',
    "3:69 `token` holds a line break, NUL or another control character",
  ],
  [
    "a written token gets a warning",
    "listen: { proxy: 127.0.0.1:1, admin: { address: 127.0.0.1:2, token: abcdefgh } }\n",
    "3:69 warning: `token` is a secret written out; use `${env:NAME}` or `${file:PATH}`",
  ],
  [
    "localhost is no address",
    "listen: { proxy: localhost:1 }\n",
    "3:18 `proxy` must name an address; write `127.0.0.1:1` or `[::1]:1`",
  ],
]);
