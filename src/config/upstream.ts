/** The `upstream` section: addresses, roots and names beyond the usual. Pure. */
import { resolve } from "node:path";
import { parseHostnameIdn } from "../base/hostname.ts";
import { parseIpAddress } from "../base/ip.ts";
import type { Config } from "../model/config.ts";
import type { IpAddress } from "../model/exchange.ts";
import type { AddressRange, ParentSource } from "../model/policy.ts";
import { readClientCertificates } from "./client-certificates.ts";
import { parseEndpoint } from "./endpoint.ts";
import { present, readMap, readText, readTexts } from "./expect.ts";
import { DNS_KEYS, UPSTREAM_KEYS } from "./keys.ts";
import { readParent } from "./parent.ts";
import { readAddresses, readOpenRanges, readRanges } from "./ranges.ts";
import { quoteName, type Report } from "./report.ts";
import type { ClientCertificates, Scope } from "./scope.ts";
import type { MapEntry, TreeNode } from "./tree.ts";

export interface Upstream extends Pick<Config, "upstream"> {
  readonly allowRanges: readonly AddressRange[];
  readonly denyRanges: readonly AddressRange[];
  readonly parent: ParentSource | undefined;
  readonly certificates: ClientCertificates;
}

export function readUpstream(scope: Scope, node: TreeNode | undefined): Upstream {
  const { report } = scope;
  const fields = node === undefined ? undefined : readMap(report, node, "`upstream`", UPSTREAM_KEYS);
  const allow = fields?.get("allow_ranges");
  const deny = fields?.get("deny_ranges");
  const file = fields?.get("ca_file");
  const proxy = fields?.get("proxy");
  const caFile = file && readText(report, file, "`ca_file`");
  const certificates = readClientCertificates(scope, present(fields?.get("client_certificates")));
  const dns = readDns(report, present(fields?.get("dns")));
  return {
    allowRanges: allow === undefined ? [] : readOpenRanges(report, allow, "`allow_ranges`"),
    denyRanges: (deny && readRanges(report, deny, "`deny_ranges`")?.map(({ range }) => range)) ?? [],
    parent: proxy && readParent(scope, proxy),
    certificates,
    upstream: { caFile: caFile && resolve(scope.folder, caFile), ...dns },
  };
}

function readDns(
  report: Report,
  node: TreeNode | undefined,
): Pick<Config["upstream"], "dnsServers" | "dnsHosts"> {
  const fields = node === undefined ? undefined : readMap(report, node, "`dns`", DNS_KEYS);
  const servers = fields?.get("servers");
  const hosts = present(fields?.get("hosts"));
  return {
    dnsServers: servers === undefined ? [] : readServers(report, servers),
    dnsHosts: hosts === undefined ? new Map() : readHosts(report, hosts),
  };
}

function readServers(report: Report, node: TreeNode): readonly string[] {
  const texts = readTexts(report, node, "`servers`") ?? [];
  return texts.flatMap(({ text, at }) => {
    const server = canonicalServer(text);
    if (server === undefined) {
      report.error(
        at,
        "Each of `servers` must be an address, or an address and a port such as `10.0.0.53:5353`",
      );
    }
    return server === undefined ? [] : [server];
  });
}

function canonicalServer(text: string): string | undefined {
  const address = parseIpAddress(text);
  if (address !== undefined) return address.text;
  const parsed = parseEndpoint(text);
  if (!parsed.ok || parsed.endpoint.port === 0) return undefined;
  const { host, port } = parsed.endpoint;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function readHosts(report: Report, node: TreeNode): ReadonlyMap<string, readonly IpAddress[]> {
  const hosts = new Map<string, readonly IpAddress[]>();
  if (node.kind !== "map") {
    report.error(node.at, "`hosts` must be a map of names and lists of addresses");
    return hosts;
  }
  for (const entry of node.entries) readHost(report, entry, hosts);
  return hosts;
}

function readHost(report: Report, entry: MapEntry, hosts: Map<string, readonly IpAddress[]>): void {
  const host = parseHostnameIdn(entry.key);
  const addresses = readAddresses(report, entry.value, "`hosts`");
  if (host === undefined) report.error(entry.keyAt, `${quoteName(entry.key)} is not a hostname`);
  else if (hosts.has(host)) report.error(entry.keyAt, `${quoteName(host)} is listed twice`);
  else if (entry.value.kind === "list" && entry.value.items.length === 0)
    report.error(entry.value.at, `${quoteName(host)} needs an address`);
  else if (addresses !== undefined) hosts.set(host, addresses);
}
