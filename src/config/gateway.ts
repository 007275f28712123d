/** The `listen.gateway` section: where redirected traffic arrives, and by which interfaces. Pure. */
import { isInterfacePattern, matchesInterface } from "../base/interface-name.ts";
import { parseIpAddress } from "../base/ip.ts";
import type { Endpoint, GatewayEndpoint } from "../model/config.ts";
import { readEndpoint } from "./endpoint.ts";
import { type Fields, readChoice, readMap, readTexts } from "./expect.ts";
import { GATEWAY_KEYS } from "./keys.ts";
import { isLoopback } from "./ranges.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

type GatewayFields = Fields<(typeof GATEWAY_KEYS)[number]>;

export function readGateway(report: Report, node: TreeNode): GatewayEndpoint | undefined {
  const fields = readMap(report, node, "`gateway`", GATEWAY_KEYS);
  if (fields === undefined) return undefined;
  const address = readPlace(report, fields, "address");
  const dns = readPlace(report, fields, "dns");
  const interfaces = readInterfaces(report, fields);
  const firewallNode = fields.get("firewall");
  const firewall = firewallNode && readChoice(report, firewallNode, "`firewall`", ["apply", "print", "none"]);
  if (address === undefined || dns === undefined || interfaces === undefined) return undefined;
  if (address.port === dns.port) {
    report.error(fields.keyAt("dns"), "`address` and `dns` must differ in their port");
  }
  return { address, dns, interfaces, firewall: firewall ?? "apply" };
}

/** The rules name the port, and redirect to an address of the interface. */
function readPlace(report: Report, fields: GatewayFields, key: "address" | "dns"): Endpoint | undefined {
  const node = fields.get(key);
  if (node === undefined) {
    report.error(fields.at, `\`${key}\` is missing here`);
    return undefined;
  }
  const endpoint = readEndpoint(report, node, `\`${key}\``);
  if (endpoint === undefined) return undefined;
  const ip = parseIpAddress(endpoint.host);
  if (endpoint.port === 0) report.error(node.at, `\`${key}\` needs a fixed port, for the firewall names it`);
  else if (ip !== undefined && isLoopback(ip)) {
    const advice = `write \`[::]:${endpoint.port}\``;
    report.error(
      node.at,
      `Nothing that is redirected arrives at the loopback address of \`${key}\`; ${advice}`,
    );
  }
  return endpoint;
}

function readInterfaces(report: Report, fields: GatewayFields): readonly string[] | undefined {
  const node = fields.get("interfaces");
  if (node === undefined) {
    report.error(fields.at, "`interfaces` is missing here");
    return undefined;
  }
  const items = readTexts(report, node, "`interfaces`");
  if (items?.length === 0) report.error(node.at, "`interfaces` is empty, so nothing could arrive");
  for (const { text, at } of items ?? []) {
    if (!isInterfacePattern(text)) {
      report.error(
        at,
        "This must be the name of an interface, or the beginning of one and `*`, as in `veth-*`",
      );
    } else if (matchesInterface([text], "lo")) {
      report.error(at, "The loopback interface is the host's own and no way in for a sandbox");
    }
  }
  return items?.map(({ text }) => text);
}
