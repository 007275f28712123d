/** The tables as text: what is in them, in which order, and that nft itself reads them. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import { loadConfigText } from "../../src/config/load.ts";
import type { Config, GatewayEndpoint } from "../../src/model/config.ts";
import { renderRelease, renderRemoval, renderTables } from "../../src/sandbox/nft.ts";

const TEXT = `version: 1
listen: { gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: [sbx0, br0, "veth-*"] } }
sandboxes:
  - { id: a, source: [10.80.0.2, 10.80.0.0/30, 10.80.0.0/30, "fd80::2", "fd80::/64"], interface: sbx0, mac: "02:00:00:00:00:11", network: disabled }
  - { id: b, source: [10.81.0.2, "fd81::/120"], interface: port1, mac: "02:00:00:00:00:22", network: disabled }
  - { id: c, source: [10.81.0.3], interface: port2, network: disabled }
  - { id: d, source: ["fd81::300"], interface: port3, network: disabled }
  - { id: f, source: [10.82.0.2], network: disabled }
`;

function configOf(text: string): { readonly config: Config; readonly gateway: GatewayEndpoint } {
  const loaded = loadConfigText(text, "/etc/sallyport.yaml", 1);
  assert.ok(loaded.ok);
  const { gateway } = loaded.config.listen;
  assert.ok(gateway !== undefined);
  return { config: loaded.config, gateway };
}

function tables(bridgeNames: boolean): string {
  const { config, gateway } = configOf(TEXT);
  return renderTables(gateway, config, { bridgeNames });
}

/** The lines of one chain. */
function chainOf(name: string): readonly string[] {
  const lines = tables(true)
    .split("\n")
    .map((line) => line.trim());
  const start = lines.indexOf(`chain ${name} {`);
  assert.notEqual(start, -1, name);
  return lines.slice(start + 1, lines.indexOf("}", start));
}

test("renderTables: the kernel takes them, again and again, and takes them away", () => {
  const own = process.getuid?.() === 0 ? ["-n"] : ["-Urn"];
  const script = [tables(false), tables(false), renderRelease(), renderRemoval(), renderRemoval()].join("\n");
  const { status, stderr } = spawnSync("unshare", [...own, "nft", "-f", "-"], {
    input: script,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
});

test("renderTables: nft can read what no kernel here may carry out", () => {
  const { stderr } = spawnSync("unshare", [process.getuid?.() === 0 ? "-n" : "-Urn", "nft", "-f", "-"], {
    input: tables(true),
    encoding: "utf8",
  });
  assert.doesNotMatch(stderr, /syntax error|unexpected/);
});

test("renderTables: each interface is redirected, DNS first, and guarded to the last line", () => {
  assert.deepEqual(chainOf("steering").slice(2), [
    'iifname "sbx0" goto steer',
    'iifname "br0" goto steer',
    'iifname "veth-*" goto steer',
  ]);
  assert.deepEqual(chainOf("steer"), [
    "udp dport 53 redirect to :15053",
    "tcp dport 53 redirect to :15053",
    "meta l4proto tcp redirect to :15001",
  ]);
  assert.equal(chainOf("only").at(-1), "drop");
  assert.deepEqual(
    chainOf("guard").slice(2),
    chainOf("steering")
      .slice(2)
      .map((line) => line.replace("steer", "only")),
  );
});

test("renderTables: a source is held to its interface and its MAC address", () => {
  const known = chainOf("known");
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

test("renderTables: a port is held to its addresses, and nobody else has them", () => {
  assert.ok(chainOf("port_0").includes("ip saddr != { 10.81.0.2/32 } drop"));
  assert.ok(chainOf("port_1").includes("ether type ip6 drop"), "it has no IPv6 address");
  assert.ok(chainOf("port_2").includes("ether type ip drop"), "it has no IPv4 address");
  assert.ok(chainOf("ports").includes("ip saddr { 10.81.0.2/32, 10.81.0.3/32 } drop"));
  assert.ok(chainOf("apart").includes('oifname { "port1", "port2", "port3" } drop'));
  assert.ok(chainOf("apart").includes('meta ibrname "br0" drop'));
  assert.doesNotMatch(tables(false), /ibrname/);
});

test("renderTables: a sandbox of one family with a MAC address has no other family", () => {
  const { config, gateway } = configOf(`version: 1
listen: { gateway: { address: "[::]:1", dns: "[::]:2", interfaces: [sbx0] } }
sandboxes: [ { id: a, source: [10.80.0.2], mac: "02:00:00:00:00:11", network: disabled } ]
`);
  const text = renderTables(gateway, config, { bridgeNames: false });
  assert.match(text, /ether saddr \{ 02:00:00:00:00:11 \} meta nfproto ipv6 drop/);
});

test("renderTables: a port with every IPv6 address may speak for each of them", () => {
  const { config, gateway } = configOf(`version: 1
listen: { gateway: { address: "[::]:1", dns: "[::]:2", interfaces: [br0] } }
sandboxes: [ { id: a, source: ["::/0"], interface: port1, network: disabled } ]
`);
  assert.match(
    renderTables(gateway, config, { bridgeNames: false }),
    /\n\t\ticmpv6 type nd-neighbor-advert accept\n/,
  );
});

test("renderRelease: it empties the redirection and deletes nothing", () => {
  assert.equal(renderRelease(), "flush chain inet sallyport steering\n");
  assert.match(execFileSync("nft", ["--version"], { encoding: "utf8" }), /nftables/);
});
