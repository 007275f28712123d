/** The tables as text: what is in them, in which order, and that nft itself reads them. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { test } from "node:test";
import { renderRelease, renderRemoval, renderTables } from "../../src/sandbox/nft.ts";
import { configOf, linesOfChain, TEXT } from "./nft-gateway.ts";

function tables(bridgeNames: boolean): string {
  const { config, gateway } = configOf(TEXT);
  return renderTables(gateway, config, { bridgeNames });
}

function chainOf(name: string): readonly string[] {
  return linesOfChain(tables(true).split("\n"), name);
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

test("renderRelease: it empties the redirection and deletes nothing", () => {
  assert.equal(renderRelease(), "flush chain inet sallyport steering\n");
  assert.match(execFileSync("nft", ["--version"], { encoding: "utf8" }), /nftables/);
});
