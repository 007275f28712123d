/** Listening addresses and the advice on wrong ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEndpoint } from "../../src/config/endpoint.ts";
import { testProblems } from "./support.ts";

const TAKEN: readonly (readonly [string, string, number])[] = [
  ["127.0.0.1:8080", "127.0.0.1", 8080],
  ["0.0.0.0:80", "0.0.0.0", 80],
  ["127.0.0.1:0", "127.0.0.1", 0],
  ["[::1]:65535", "::1", 65_535],
  ["[::]:15001", "::", 15_001],
  ["[FE80::1]:1", "fe80::1", 1],
];

for (const [text, host, port] of TAKEN) {
  test(`parseEndpoint: ${text} is an address and a port`, () => {
    assert.deepEqual(parseEndpoint(text), { ok: true, endpoint: { host, port } });
  });
}

const FORM = "must be an IP address and a port, as in `127.0.0.1:8080` or `[::1]:8080`";
const REFUSED: readonly (readonly [string, string])[] = [
  [":8080", "must be an address and a port; write `127.0.0.1:8080`, or `[::]:8080` for every address"],
  ["8080", "must be an address and a port; write `127.0.0.1:8080`, or `[::]:8080` for every address"],
  ["*:9090", "must be an address and a port; write `127.0.0.1:9090`, or `[::]:9090` for every address"],
  ["localhost:8080", "must name an address; write `127.0.0.1:8080` or `[::1]:8080`"],
  ["127.0.0.1", "needs a port: write `127.0.0.1:8080`"],
  ["::1", "needs a port, and brackets around the address: write `[::1]:8080`"],
  ["[::1]", "needs a port, and brackets around the address: write `[::1]:8080`"],
  ["proxy.example.com:8080", FORM],
  ["127.0.0.1:99999", "has a port above 65535"],
  ["127.0.0.1:", FORM],
  ["127.0.0.1:80a", FORM],
  ["[127.0.0.1]:80", FORM],
  ["0177.0.0.1:80", FORM],
  ["[fe80::1%eth0]:80", FORM],
  ["http://127.0.0.1:8080", FORM],
  ["", FORM],
];

for (const [text, problem] of REFUSED) {
  test(`parseEndpoint: \`${text}\` is refused`, () => {
    assert.deepEqual(parseEndpoint(text), { ok: false, problem });
  });
}

testProblems("readEndpoint", "version: 1\nnetwork: { allowlist: [] }\nlisten:\n", [
  [
    "a bare port is a number, and gets the same advice",
    "  proxy: 8080\n",
    "4:10 `proxy` must be an address and a port; write `127.0.0.1:8080`, or `[::]:8080` for every address",
  ],
  ["an empty value is refused", "  proxy:\n", `4:9 \`proxy\` ${FORM}`],
  ["a list is refused", "  proxy: [127.0.0.1:1]\n", `4:10 \`proxy\` ${FORM}`],
]);
