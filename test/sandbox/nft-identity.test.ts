import assert from "node:assert/strict";
import { test } from "node:test";
import { identityChains } from "../../src/sandbox/nft-identity.ts";
import { configOf, linesOfChain, TEXT } from "./nft-gateway.ts";

test("identityChains: a source is held to its interface and its MAC address", () => {
  const { config, gateway } = configOf(TEXT);
  const known = linesOfChain(identityChains(gateway, config.policy.sandboxes), "known");
  assert.ok(
    known.includes('ip saddr { 10.80.0.0/30 } ip saddr . iifname != { 10.80.0.0/30 . "sbx0" } drop'),
    "an address within its own range stands there once",
  );
  const pairs = "10.80.0.0/30 . 02:00:00:00:00:11, 10.81.0.2/32 . 02:00:00:00:00:22";
  assert.ok(
    known.includes(`ip saddr { 10.80.0.0/30, 10.81.0.2/32 } ip saddr . ether saddr != { ${pairs} } drop`),
  );
  assert.ok(!known.some((line) => line.includes("10.82.0.2")), "nothing narrows it");
  assert.ok(!known.some((line) => line.includes("port1")), "a port is no interface of this table");
});

test("identityChains: a sandbox of one family with a MAC address has no other family", () => {
  const { config, gateway } = configOf(`version: 1
listen: { gateway: { address: "[::]:1", dns: "[::]:2", interfaces: [sbx0] } }
sandboxes: [ { id: a, source: [10.80.0.2], mac: "02:00:00:00:00:11", network: disabled } ]
`);
  const known = linesOfChain(identityChains(gateway, config.policy.sandboxes), "known");
  assert.ok(known.includes("ether saddr { 02:00:00:00:00:11 } meta nfproto ipv6 drop"));
});
