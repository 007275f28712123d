/** The `listen` section: the doors of this version, and what is risky about where they stand. Pure. */
import { parseIpAddress } from "../base/ip.ts";
import type { AdminEndpoint, Config, Endpoint } from "../model/config.ts";
import { readEndpoint } from "./endpoint.ts";
import { type Fields, readMap } from "./expect.ts";
import { readGateway } from "./gateway.ts";
import { ADMIN_KEYS, LISTEN_KEYS } from "./keys.ts";
import { isLoopback } from "./ranges.ts";
import type { Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

const DEFAULT_LISTEN: Config["listen"] = {
  proxy: { host: "127.0.0.1", port: 8080 },
  admin: { host: "127.0.0.1", port: 9464, token: undefined },
  gateway: undefined,
  reverse: undefined,
};

type ListenFields = Fields<(typeof LISTEN_KEYS)[number]>;

/** Without the section both doors stand at their defaults; with it, those that it names. */
export function readListen(
  scope: Scope,
  node: TreeNode | undefined,
  hasSandboxes: boolean,
): Config["listen"] {
  const { report } = scope;
  const fields = node === undefined ? undefined : readMap(report, node, "`listen`", LISTEN_KEYS);
  if (fields === undefined) return DEFAULT_LISTEN;
  const proxyNode = fields.get("proxy");
  const adminNode = fields.get("admin");
  const gatewayNode = fields.get("gateway");
  const reverseNode = fields.get("reverse");
  const listen = {
    proxy: proxyNode && readEndpoint(report, proxyNode, "`proxy`"),
    admin: adminNode && readAdmin(scope, adminNode),
    gateway: gatewayNode && readGateway(report, gatewayNode),
    reverse: reverseNode && readEndpoint(report, reverseNode, "`reverse`"),
  };
  if (proxyNode === undefined && gatewayNode === undefined && reverseNode === undefined) {
    report.error(fields.at, "`listen` opens no door; name at least `proxy`, `gateway` or `reverse`");
  }
  if (!hasSandboxes) warnOfOpenDoors(scope, fields, listen);
  if (listen.admin !== undefined) warnOfOpenAdmin(scope, listen.admin, fields.keyAt("admin"));
  checkClashes(report, fields, listen);
  checkGateway(report, fields, listen);
  return listen;
}

function checkClashes(
  report: Report,
  fields: ListenFields,
  { proxy, admin, reverse }: Config["listen"],
): void {
  const pairs = [
    ["proxy", proxy, "admin", admin],
    ["proxy", proxy, "reverse", reverse],
    ["admin", admin, "reverse", reverse],
  ] as const;
  for (const [one, first, other, second] of pairs) {
    if (first === undefined || second === undefined || !clash(first, second)) continue;
    const message = `\`${one}\` and \`${other}\` cannot stand at the same address and port`;
    report.error(fields.keyAt(other), message);
  }
}

function checkGateway(
  report: Report,
  fields: ListenFields,
  { proxy, admin, gateway, reverse }: Config["listen"],
): void {
  for (const place of gateway === undefined ? [] : [gateway.address, gateway.dns]) {
    for (const other of [proxy, admin, reverse]) {
      if (other === undefined || !clash(place, other)) continue;
      const message = `\`gateway\` cannot stand at port ${place.port}, where another door is`;
      report.error(fields.keyAt("gateway"), message);
    }
  }
}

function readAdmin(scope: Scope, node: TreeNode): AdminEndpoint | undefined {
  if (node.kind !== "map") {
    const endpoint = readEndpoint(scope.report, node, "`admin`");
    return endpoint && { ...endpoint, token: undefined };
  }
  const fields = readMap(scope.report, node, "`admin`", ADMIN_KEYS);
  const address = fields?.get("address");
  const tokenNode = fields?.get("token");
  if (address === undefined) {
    scope.report.error(node.at, "`admin` needs an `address`");
    return undefined;
  }
  const endpoint = readEndpoint(scope.report, address, "`address`");
  const key = "listen.admin.token";
  const token = tokenNode && readTemplate(scope, tokenNode, { what: "`token`", key, secret: true });
  return endpoint && { ...endpoint, token: token && key };
}

function warnOfOpenDoors(scope: Scope, fields: ListenFields, { proxy, reverse }: Config["listen"]): void {
  const message = "Anyone who reaches this address may use the proxy, since `sandboxes` is empty";
  for (const [key, door] of [
    ["proxy", proxy],
    ["reverse", reverse],
  ] as const) {
    if (door !== undefined && !isLocal(door)) scope.report.warn(fields.keyAt(key), message);
  }
}

function warnOfOpenAdmin(scope: Scope, admin: AdminEndpoint, at: Position): void {
  if (isLocal(admin) || admin.token !== undefined) return;
  scope.report.warn(at, "`admin` is open to other machines without a `token`");
}

function isLocal(endpoint: Endpoint): boolean {
  const address = parseIpAddress(endpoint.host);
  return address !== undefined && isLoopback(address);
}

function clash(a: Endpoint, b: Endpoint): boolean {
  if (a.port === 0 || a.port !== b.port) return false;
  return a.host === b.host || [a.host, b.host].some((host) => host === "::" || host === "0.0.0.0");
}
