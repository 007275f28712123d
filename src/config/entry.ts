/** What the entries of allowlist and denylist share. Pure. */
import { isLocalhost, isSpecialUse, parseHostname } from "../base/hostname.ts";
import { rangeContains } from "../base/ip.ts";
import { classifyAddress, isNeverOpen } from "../decide/address-class.ts";
import type { Hostname, IpAddress } from "../model/exchange.ts";
import type { PatternSource } from "../model/pattern.ts";
import type { DenySource } from "../model/policy.ts";
import { parseDomain } from "./domain.ts";
import { type Fields, readInteger, readList, readText } from "./expect.ts";
import type { Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import type { Position, TreeNode } from "./tree.ts";

export interface PlacedPattern {
  readonly source: PatternSource;
  readonly written: string;
}

export interface PlacedDeny {
  readonly deny: DenySource;
  readonly id: string | undefined;
  readonly at: Position;
}

export function readPattern(report: Report, fields: Fields<"domain">): PlacedPattern | undefined {
  const node = fields.get("domain");
  if (node === undefined) {
    report.error(fields.at, "An entry needs a `domain`");
    return undefined;
  }
  const written = readText(report, node, "`domain`");
  if (written === undefined) return undefined;
  const parsed = parseDomain(written);
  if (parsed.ok) return { source: parsed.pattern, written };
  report.error(node.at, parsed.problem);
  return undefined;
}

/** Letters, digits, dots, hyphens and underscores: it becomes a metric label. */
export function readId(
  report: Report,
  node: TreeNode | undefined,
  what: "`id`" | "`name`" = "`id`",
): string | undefined {
  const id = node && readText(report, node, what);
  if (node === undefined || id === undefined) return undefined;
  if (/^[A-Za-z0-9._-]{1,64}$/.test(id)) return id;
  report.error(node.at, `${what} must be 1 to 64 letters, digits, dots, hyphens or underscores`);
  return undefined;
}

export function readPorts(report: Report, node: TreeNode | undefined): readonly number[] | undefined {
  const items = node && readList(report, node, "`ports`");
  if (node === undefined || items === undefined) return undefined;
  if (items.length === 0)
    report.error(node.at, "`ports` is empty, so nothing can match; leave it out or list some");
  const ports = new Set<number>();
  for (const item of items) {
    const port = readInteger(report, item, "A port", { min: 1, max: 65_535 });
    if (port === undefined) continue;
    if (ports.has(port)) report.error(item.at, `Port ${port} is listed twice`);
    ports.add(port);
  }
  return [...ports];
}

/** Why no request can ever get through an entry of this pattern, whatever else it says; undefined where some can. */
export function hopeless(
  pattern: PatternSource,
  ranges: Pick<Scope, "allowRanges" | "denyRanges">,
): string | undefined {
  switch (pattern.kind) {
    case "exact":
      return hopelessName(parseHostname(pattern.host));
    case "wildcard":
      return hopelessWildcard(parseHostname(`name.${pattern.base}`));
    case "any":
      return undefined;
    case "address":
      return hopelessAddress(pattern.address, ranges);
  }
}

function hopelessName(host: Hostname | undefined): string | undefined {
  if (host === undefined || !isLocalhost(host)) return undefined;
  return "Names under `localhost` are refused whatever is listed";
}

/** `example` stands for the names that the wildcard covers. */
function hopelessWildcard(example: Hostname | undefined): string | undefined {
  if (example === undefined || !isSpecialUse(example)) return undefined;
  return "No wildcard covers names under `.local`, `.internal`, `.home.arpa` and `.localhost`; list the hosts";
}

function hopelessAddress(
  address: IpAddress,
  { allowRanges, denyRanges }: Pick<Scope, "allowRanges" | "denyRanges">,
): string | undefined {
  const addressClass = classifyAddress(address);
  if (isNeverOpen(addressClass)) return `This address (${addressClass}) is refused whatever is listed`;
  if (denyRanges.some((range) => rangeContains(range, address))) return "`deny_ranges` holds this address";
  if (addressClass === "public" || allowRanges.some((range) => rangeContains(range, address)))
    return undefined;
  return `This address (${addressClass}) is refused unless \`upstream.allow_ranges\` holds it`;
}
