/** Applying, letting go and removing the tables, in a namespace of the test's own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const ROOT = process.getuid?.() === 0;

/** Runs statements with the module's functions in a namespace, each with a list of the rules after it. */
function inNamespace(statements: string, command: readonly string[] = []): readonly string[] {
  const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    import { spawnSync } from "node:child_process";
    const { applyFirewall, releaseFirewall, removeFirewall } = await import(${url("../../src/sandbox/firewall.ts")});
    const { loadConfigText } = await import(${url("../../src/config/load.ts")});
    const rules = () => spawnSync("nft", ["list", "ruleset"], { encoding: "utf8" }).stdout;
    const load = (sandbox) => loadConfigText('version: 1\\nlisten: { gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: [sbx0] } }\\nsandboxes: [ { id: a, source: [' + sandbox + '], interface: sbx0, network: disabled } ]\\n', "/x.yaml", 1).config;
    const say = (value) => console.log(JSON.stringify(value));
    const config = load("10.80.0.2");
    const gateway = config.listen.gateway;
    ${statements}
  `;
  const own = ["unshare", ROOT ? "-n" : "-Urn", "--", ...command];
  const args = [
    ...own.slice(1),
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    "--input-type=module",
    "-e",
    program,
  ];
  const { status, stdout, stderr } = spawnSync(own[0] ?? "", args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as string);
}

test("applyFirewall: the tables are replaced as a whole, let go, and taken away", () => {
  const [first = "", second = "", released = "", removed] = inNamespace(`
    await applyFirewall(gateway, config); say(rules());
    await applyFirewall(gateway, load("10.80.0.3")); say(rules());
    await releaseFirewall(); say(rules());
    await removeFirewall(); await removeFirewall(); say(rules());
  `);
  assert.match(first, /ip saddr (\{ )?10\.80\.0\.2/);
  assert.match(second, /ip saddr (\{ )?10\.80\.0\.3/);
  assert.doesNotMatch(second, /10\.80\.0\.2/);
  assert.match(second, /goto steer/);
  assert.doesNotMatch(released, /goto steer/);
  assert.match(released, /goto only/);
  assert.equal(removed, "");
});

test("applyFirewall: what nft will not take is said, and what stood there stands", () => {
  const [before, message, after] = inNamespace(`
    await applyFirewall(gateway, config); say(rules());
    const bad = { ...gateway, interfaces: ['sbx0" drop\\n bad'] };
    await applyFirewall(bad, config).catch((error) => say([error.code, error.message].join(" ")));
    say(rules());
  `);
  assert.match(message ?? "", /^E_CONFIG The firewall cannot be applied: nft: /);
  assert.equal(after, before);
});

test("applyFirewall: without the right to, the remedy is said", () => {
  const drop = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin", "--"];
  const messages = inNamespace(
    `
    for (const act of [() => applyFirewall(gateway, config), releaseFirewall, removeFirewall]) {
      await act().catch((error) => say(error.message));
    }
  `,
    drop,
  );
  assert.equal(messages.length, 3);
  for (const message of messages) assert.match(message, /not permitted.*; it needs root or CAP_NET_ADMIN/);
});
