/** A gateway with a sandbox of every sort, as a config has it. */
import assert from "node:assert/strict";
import { loadConfigText } from "../../src/config/load.ts";
import type { Config, GatewayEndpoint } from "../../src/model/config.ts";

export const TEXT = `version: 1
listen: { gateway: { address: "[::]:15001", dns: "[::]:15053", interfaces: [sbx0, br0, "veth-*"] } }
sandboxes:
  - { id: a, source: [10.80.0.2, 10.80.0.0/30, 10.80.0.0/30, "fd80::2", "fd80::/64"], interface: sbx0, mac: "02:00:00:00:00:11", network: disabled }
  - { id: b, source: [10.81.0.2, "fd81::/120"], interface: port1, mac: "02:00:00:00:00:22", network: disabled }
  - { id: c, source: [10.81.0.3], interface: port2, network: disabled }
  - { id: d, source: ["fd81::300"], interface: port3, network: disabled }
  - { id: f, source: [10.82.0.2], network: disabled }
`;

export function configOf(text: string): { readonly config: Config; readonly gateway: GatewayEndpoint } {
  const loaded = loadConfigText(text, "/etc/sallyport.yaml", 1);
  assert.ok(loaded.ok);
  const { gateway } = loaded.config.listen;
  assert.ok(gateway !== undefined);
  return { config: loaded.config, gateway };
}

/** The lines of one chain of those in `lines`. */
export function linesOfChain(lines: readonly string[], name: string): readonly string[] {
  const trimmed = lines.map((line) => line.trim());
  const start = trimmed.indexOf(`chain ${name} {`);
  assert.notEqual(start, -1, name);
  return trimmed.slice(start + 1, trimmed.indexOf("}", start));
}
