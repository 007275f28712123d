/** The gateway's section: its form, its ports, its interfaces; and what sandboxes say for it. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the config look like those of JavaScript
import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, testProblems } from "./support.ts";

const HEAD = "version: 1\nnetwork: { allowlist: [] }\n";
const DOOR = 'address: "[::]:15001", dns: "[::]:15053", interfaces: [sbx0, "veth-*"]';
const PATTERN = "This must be the name of an interface, or the beginning of one and `*`, as in `veth-*`";

test("readGateway: it may be the only door, and applies its firewall unless told otherwise", () => {
  const { listen } = configOf(`${HEAD}listen: { gateway: { ${DOOR} } }\n`);
  assert.equal(listen.proxy, undefined);
  assert.deepEqual(listen.gateway, {
    address: { host: "::", port: 15001 },
    dns: { host: "::", port: 15053 },
    interfaces: ["sbx0", "veth-*"],
    firewall: "apply",
  });
  for (const firewall of ["apply", "print", "none"]) {
    const text = `${HEAD}listen: { gateway: { ${DOOR}, firewall: ${firewall} } }\n`;
    assert.equal(configOf(text).listen.gateway?.firewall, firewall);
  }
});

testProblems("readGateway", `${HEAD}listen:\n  proxy: 127.0.0.1:1\n  gateway:`, [
  ["no map", " x\n", "5:12 `gateway` must be a map of keys and values, found text"],
  [
    "nothing in it",
    " {}\n",
    "5:12 `address` is missing here",
    "5:12 `dns` is missing here",
    "5:12 `interfaces` is missing here",
  ],
  [
    "its form",
    " { address: 15001, interfaces: sbx0, firewall: on }\n",
    "5:12 `dns` is missing here",
    "5:23 `address` must be an address and a port; write `127.0.0.1:15001`, or `[::]:15001` for every address",
    "5:42 `interfaces` must be a list, found text",
    "5:58 `firewall` must be one of `apply`, `print`, `none`",
  ],
  [
    "an address that nothing is redirected to",
    ' { address: "127.0.0.1:15001", dns: "[::1]:15053", interfaces: [a] }\n',
    "5:23 Nothing that is redirected arrives at the loopback address of `address`; write `[::]:15001`",
    "5:47 Nothing that is redirected arrives at the loopback address of `dns`; write `[::]:15053`",
  ],
  [
    "a port that nobody knows",
    ' { address: "[::]:0", dns: "[::]:15053", interfaces: [a] }\n',
    "5:23 `address` needs a fixed port, for the firewall names it",
  ],
  [
    "one port for both",
    ' { address: "[::]:15001", dns: "0.0.0.0:15001", interfaces: [a] }\n',
    "5:37 `address` and `dns` must differ in their port",
  ],
  [
    "the port of another door",
    ' { address: "[::]:1", dns: "[::]:2", interfaces: [a] }\n',
    "5:3 `gateway` cannot stand at port 1, where another door is",
  ],
  [
    "no interface",
    ' { address: "[::]:15001", dns: "[::]:15053", interfaces: [] }\n',
    "5:68 `interfaces` is empty, so nothing could arrive",
  ],
  [
    "interfaces that are none, or too many",
    ` { address: "[::]:15001", dns: "[::]:15053", interfaces: ["*", lo, "l*", 'a"b', "a b", "", sixteen-letters-, "a*b"] }\n`,
    `5:69 ${PATTERN}`,
    "5:74 The loopback interface is the host's own and no way in for a sandbox",
    "5:78 The loopback interface is the host's own and no way in for a sandbox",
    `5:84 ${PATTERN}`,
    `5:91 ${PATTERN}`,
    "5:98 Each of `interfaces` must not be empty",
    `5:102 ${PATTERN}`,
    `5:120 ${PATTERN}`,
  ],
]);

const SANDBOXES = `version: 1\nlisten: { gateway: { ${DOOR} } }\nsandboxes:\n`;

test("readSandboxes: interface and mac count at the gateway, the mac in lower case", () => {
  const { policy } = configOf(
    `${SANDBOXES}  - { id: a, source: [10.0.0.1], interface: sbx0, mac: "02:00:00:00:00:AF", network: disabled }\n`,
  );
  assert.equal(policy.sandboxes[0]?.interface, "sbx0");
  assert.equal(policy.sandboxes[0]?.mac, "02:00:00:00:00:af");
});

testProblems("readSandboxes", SANDBOXES, [
  [
    "they narrow a source",
    '  - { id: a, token: "${env:T}", interface: sbx0, mac: "02:00:00:00:00:11", network: disabled }\n',
    "4:33 `interface` narrows a `source`, and there is none",
    "4:50 `mac` narrows a `source`, and there is none",
  ],
  [
    "the port of a bridge is one sandbox's, an interface of the gateway's may be several's",
    "  - { id: a, source: [10.0.0.1], interface: p1, network: disabled }\n  - { id: b, source: [10.0.0.2], interface: p1, network: disabled }\n  - { id: c, source: [10.0.0.3], interface: sbx0, network: disabled }\n  - { id: d, source: [10.0.0.4], interface: sbx0, network: disabled }\n",
    "5:7 The port `p1` is another sandbox's on line 4",
  ],
  [
    "the host's own interface is no sandbox's",
    "  - { id: a, source: [10.0.0.1], interface: lo, network: disabled }\n",
    "4:45 `interface` must be the name of an interface",
  ],
]);
