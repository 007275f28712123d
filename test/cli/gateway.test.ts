/** The gateway command: what it prints, and how it ends. Taking tables away is tested with real ones in test/path. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

function gateway(...args: readonly string[]): { code: number | null; stdout: string; stderr: string } {
  const command = ["--disable-warning=ExperimentalWarning", "src/start.mjs", "gateway", ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: ROOT, encoding: "utf8" });
  return { code: status, stdout, stderr };
}

test("gateway show: prints the tables of the example, each sandbox at its place", () => {
  const { code, stdout } = gateway("show", "--config", "config/examples/gateway.yaml");
  assert.equal(code, 0);
  for (const line of [
    'iifname "tap0" goto steer',
    'iifname "ve-*" goto only',
    '"veth-build" : goto port_0',
  ]) {
    assert.ok(stdout.includes(line), line);
  }
});

test("gateway show: a config without a gateway has none to show", () => {
  const { code, stdout, stderr } = gateway("show", "--config", "config/sallyport.yaml");
  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /The config has no `listen.gateway`/);
});

test("gateway show: a file that cannot be used is said", () => {
  const { code, stderr } = gateway("show", "--config", "config/nowhere.yaml");
  assert.equal(code, 2);
  assert.match(stderr, /nowhere\.yaml:1:1: /);
});

for (const args of [[], ["hide"], ["show", "more"]]) {
  test(`gateway ${args.join(" ")}: says what there is`, () => {
    const { code, stderr } = gateway(...args);
    assert.equal(code, 2);
    assert.match(stderr, /gateway show, gateway remove/);
  });
}
