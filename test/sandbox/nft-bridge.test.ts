import assert from "node:assert/strict";
import { test } from "node:test";
import { apartChain, portChains } from "../../src/sandbox/nft-bridge.ts";
import { configOf, linesOfChain, TEXT } from "./nft-gateway.ts";

test("portChains: a port is held to its addresses, and nobody else has them", () => {
  const { config, gateway } = configOf(TEXT);
  const chains = portChains(gateway, config.policy.sandboxes);
  assert.ok(linesOfChain(chains, "port_0").includes("ip saddr != { 10.81.0.2/32 } drop"));
  assert.ok(linesOfChain(chains, "port_1").includes("ether type ip6 drop"), "it has no IPv6 address");
  assert.ok(linesOfChain(chains, "port_2").includes("ether type ip drop"), "it has no IPv4 address");
  assert.ok(linesOfChain(chains, "ports").includes("ip saddr { 10.81.0.2/32, 10.81.0.3/32 } drop"));
});

test("portChains: a port with every IPv6 address may speak for each of them", () => {
  const { config, gateway } = configOf(`version: 1
listen: { gateway: { address: "[::]:1", dns: "[::]:2", interfaces: [br0] } }
sandboxes: [ { id: a, source: ["::/0"], interface: port1, network: disabled } ]
`);
  const port = linesOfChain(portChains(gateway, config.policy.sandboxes), "port_0");
  assert.ok(port.includes("icmpv6 type nd-neighbor-advert accept"));
});

test("apartChain: nothing goes from port to port, nor between ports that nobody named where bridges can be told apart", () => {
  const { config, gateway } = configOf(TEXT);
  const { sandboxes } = config.policy;
  const apart = linesOfChain(apartChain(gateway, sandboxes, { bridgeNames: true }), "apart");
  assert.ok(apart.includes('oifname { "port1", "port2", "port3" } drop'));
  assert.ok(apart.includes('meta ibrname "br0" drop'));
  assert.doesNotMatch(apartChain(gateway, sandboxes, { bridgeNames: false }).join("\n"), /ibrname/);
});
