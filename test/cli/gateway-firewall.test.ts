/** When the rules are printed, and when nothing is done at all. Applying them is tested in test/path and test/sandbox. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createGatewayFirewall } from "../../src/cli/gateway-firewall.ts";
import { loadConfigText } from "../../src/config/load.ts";
import type { Config } from "../../src/model/config.ts";
import { createLog } from "../../src/record/log.ts";

const LOG = createLog(process.stderr, (text) => text);

function configOf(firewall: string, address = "10.80.0.2"): Config {
  const door = `{ address: "[::]:15001", dns: "[::]:15053", interfaces: [sbx0], firewall: ${firewall} }`;
  const sandbox = `{ id: a, source: [${address}], interface: sbx0, network: disabled }`;
  const loaded = loadConfigText(
    `version: 1\nlisten: { gateway: ${door} }\nsandboxes: [ ${sandbox} ]\n`,
    "/x.yaml",
    1,
  );
  assert.ok(loaded.ok);
  return loaded.config;
}

function printed(config: Config): { readonly texts: string[]; apply(next: Config): Promise<void> } {
  const texts: string[] = [];
  const output = { write: (text: string) => texts.push(text) };
  const firewall = createGatewayFirewall(config.listen.gateway, LOG, output);
  return { texts, apply: firewall.apply };
}

test("createGatewayFirewall: print prints the tables at the start, and again where they change", async () => {
  const config = configOf("print");
  const { texts, apply } = printed(config);
  await apply(config);
  await apply(config);
  assert.equal(texts.length, 1);
  await apply(configOf("print", "10.80.0.3"));
  assert.match(texts[1] ?? "", /10\.80\.0\.3/);
});

test("createGatewayFirewall: the door is that of the start, whatever a reload says", async () => {
  const { texts, apply } = printed(configOf("print"));
  await apply(configOf("none"));
  assert.match(texts[0] ?? "", /redirect to :15001/);
});

test("createGatewayFirewall: none does nothing, and neither does a config without a gateway", async () => {
  const config = configOf("none");
  for (const gateway of [config.listen.gateway, undefined]) {
    const firewall = createGatewayFirewall(gateway, LOG, { write: () => assert.fail("It says something") });
    await firewall.apply(config);
    await firewall.release();
  }
});

test("createGatewayFirewall: what was never applied is not let go", async () => {
  const { gateway } = configOf("apply").listen;
  const firewall = createGatewayFirewall(gateway, LOG, { write: () => assert.fail("It says something") });
  await firewall.release();
});
