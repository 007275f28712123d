/** `upstream.proxy`: the parent proxy, and what goes past it. Pure. */
import { bypassesPattern } from "../base/bypass.ts";
import { isLocalhost, parseHostnameIdn } from "../base/hostname.ts";
import { parseRange } from "../base/ip.ts";
import { classifyAddress } from "../decide/address-class.ts";
import { decideParentAddress } from "../decide/decide-endpoint.ts";
import type { Destination } from "../model/exchange.ts";
import type { PatternSource } from "../model/pattern.ts";
import type { AddressRange, BypassSource, ParentSource } from "../model/policy.ts";
import { type AbsoluteTarget, parseAbsoluteForm } from "../wire/request-target.ts";
import { parseDomain } from "./domain.ts";
import { type Fields, isNull, readChoice, readMap, readText, readTexts } from "./expect.ts";
import { PARENT_PROXY_KEYS } from "./keys.ts";
import { quoteName, type Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

type Keys = Fields<(typeof PARENT_PROXY_KEYS)[number]>;

const AUTH = "upstream.proxy.auth";
/** Another machine's loopback is nothing that anybody means by these. */
const OWN: readonly BypassSource[] = ["127.0.0.0/8", "::1/128"].map((text) => ({
  kind: "range",
  range: parseRange(text) as AddressRange,
}));

/** A URL, or a map with more to say; undefined where there is none, or where it cannot be used. */
export function readParent(scope: Scope, node: TreeNode): ParentSource | undefined {
  const { report } = scope;
  if (isNull(node)) return undefined;
  if (node.kind !== "map") {
    const place = readPlace(report, node, "`proxy`");
    return place && { ...place, auth: undefined, bypass: OWN, resolve: "local" };
  }
  const fields = readMap(report, node, "`proxy`", PARENT_PROXY_KEYS);
  return fields && readFields(scope, fields);
}

/** A name that a sandbox can choose, it can point anywhere: none of them is resolved where no address is vetted. */
export function checkHandOver(scope: Scope, pattern: PatternSource, at: Position): void {
  const { parent, report } = scope;
  if (parent?.resolve !== "parent") return;
  if (pattern.kind !== "wildcard" && pattern.kind !== "any") return;
  if (bypassesPattern(parent.bypass, pattern)) return;
  report.error(
    at,
    "A wildcard is not possible with `upstream.proxy.resolve: parent`, where no address is checked: list each name, or list the wildcard in `no_proxy`",
  );
}

function readFields(scope: Scope, fields: Keys): ParentSource | undefined {
  const { report } = scope;
  const url = fields.get("url");
  const auth = fields.get("auth");
  const past = fields.get("no_proxy");
  const resolve = fields.get("resolve");
  if (url === undefined) report.error(fields.at, "`url` is missing here");
  const place = url && readPlace(report, url, "`url`");
  if (auth !== undefined) readTemplate(scope, auth, { what: "`auth`", key: AUTH, secret: true });
  const bypass = past === undefined ? OWN : [...OWN, ...readBypass(report, past)];
  const chosen = resolve && readChoice(report, resolve, "`resolve`", ["local", "parent"]);
  if (chosen === "parent") {
    report.warn(
      fields.keyAt("resolve"),
      "With `resolve: parent` the parent proxy resolves names, and no address is checked here: it has to refuse private ones",
    );
  }
  const key = auth === undefined ? undefined : AUTH;
  return place && { ...place, auth: key, bypass, resolve: chosen ?? "local" };
}

function readPlace(
  report: Report,
  node: TreeNode,
  what: string,
): Pick<ParentSource, "scheme" | "destination"> | undefined {
  const text = readText(report, node, what);
  if (text === undefined) return undefined;
  const parsed = parseUrl(text);
  if (parsed === undefined || parsed.target !== "/") {
    // A user and password would be a secret: the value is not quoted.
    report.error(
      node.at,
      `${what} must be \`http://\` or \`https://\`, a host and a port, without user, password or path`,
    );
    return undefined;
  }
  const { scheme, authority } = parsed;
  const { host, port } = authority;
  const destination: Destination =
    host.kind === "name"
      ? { kind: "name", host: host.name, port }
      : { kind: "address", address: host.address, port };
  const problem = unusable(destination);
  if (problem !== undefined) report.error(node.at, `${what} ${problem}`);
  return problem === undefined ? { scheme, destination } : undefined;
}

function unusable(destination: Destination): string | undefined {
  if (destination.kind === "name") {
    return isLocalhost(destination.host) ? "cannot be `localhost`; write `127.0.0.1` or `[::1]`" : undefined;
  }
  const { address } = destination;
  if (decideParentAddress(destination, address).verdict === "allow") return undefined;
  return `is of a ${classifyAddress(address)} address, which is never dialled`;
}

function parseUrl(text: string): AbsoluteTarget | undefined {
  try {
    return parseAbsoluteForm(text, "POST");
  } catch {
    return undefined;
  }
}

function readBypass(report: Report, node: TreeNode): readonly BypassSource[] {
  const texts = readTexts(report, node, "`no_proxy`") ?? [];
  return texts.flatMap(({ text, at }) => {
    const entry = parseBypass(text);
    if (entry === undefined) {
      report.error(
        at,
        `Each of \`no_proxy\` must be a name, \`*.name\`, an address, a range or \`*\`, not ${quoteName(text)}`,
      );
    }
    return entry === undefined ? [] : [entry];
  });
}

/** As other programs write it: `.name` is every name below. */
function parseBypass(text: string): BypassSource | undefined {
  const range = parseRange(text);
  if (range !== undefined) return { kind: "range", range };
  if (text.startsWith(".")) {
    const base = parseHostnameIdn(text.slice(1));
    return base && { kind: "wildcard", base };
  }
  const parsed = parseDomain(text);
  if (!parsed.ok) return undefined;
  const { pattern } = parsed;
  if (pattern.kind !== "address") return pattern;
  const whole = { base: pattern.address, prefixBits: pattern.address.octets.length * 8 };
  return { kind: "range", range: whole };
}
