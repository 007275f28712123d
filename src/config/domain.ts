/** The `domain` of an entry: one canonical pattern, or advice on how to write it. Pure. */
import { parseHostnameIdn } from "../base/hostname.ts";
import { parseIpAddress, parseRange } from "../base/ip.ts";
import type { PatternSource } from "../model/pattern.ts";

export type DomainResult =
  | { readonly ok: true; readonly pattern: PatternSource }
  | { readonly ok: false; readonly problem: string };

/** An exact name, `*.name`, `*`, or an IP literal. */
export function parseDomain(text: string): DomainResult {
  if (text === "*") return { ok: true, pattern: { kind: "any" } };
  if (text.startsWith("*.")) return parseWildcard(text.slice(2));
  const address = parseLiteral(text);
  if (address !== undefined) return { ok: true, pattern: { kind: "address", address } };
  const host = parseHostnameIdn(text);
  if (host !== undefined) return { ok: true, pattern: { kind: "exact", host } };
  return { ok: false, problem: explain(text) };
}

/** One text for equal patterns. */
export function patternKey(pattern: PatternSource): string {
  switch (pattern.kind) {
    case "exact":
      return pattern.host;
    case "wildcard":
      return `*.${pattern.base}`;
    case "any":
      return "*";
    case "address":
      return `[${pattern.address.text}]`;
  }
}

/** Keys of the patterns that hold all of `pattern`, the narrowest first; without `*`, which holds every name. */
export function coveringKeys(pattern: PatternSource): readonly string[] {
  const own = patternKey(pattern);
  if (pattern.kind === "any" || pattern.kind === "address") return [own];
  const labels = (pattern.kind === "exact" ? pattern.host : pattern.base).split(".");
  return [own, ...labels.slice(1).map((_, index) => `*.${labels.slice(index + 1).join(".")}`)];
}

function parseWildcard(rest: string): DomainResult {
  const base = parseHostnameIdn(rest);
  if (base !== undefined) return { ok: true, pattern: { kind: "wildcard", base } };
  if (rest === "" || rest === ".")
    return { ok: false, problem: "A domain `*.` lacks its name; every host is `*`" };
  if (parseLiteral(rest) !== undefined) return { ok: false, problem: "An address cannot follow `*.`" };
  return { ok: false, problem: explain(rest, "*.") };
}

function parseLiteral(text: string) {
  const inner = /^\[(.*:.*)\]$/.exec(text)?.[1];
  return parseIpAddress(inner ?? text);
}

/** `text` is no hostname and no address; `prefix` stood before it. */
function explain(text: string, prefix = ""): string {
  if (text.includes("*")) return explainStar(text);
  if (parseRange(text) !== undefined) return "A domain cannot be a range; list its addresses one by one";
  const spelling = rightSpelling(text);
  const advice = spelling === undefined ? "" : `; write \`${prefix}${spelling}\``;
  if (/[/?#@\\]/.test(text)) return `A domain is a name alone, without scheme, user or path${advice}`;
  if (/^[^:]+:[0-9]+$|\]:[0-9]+$/.test(text))
    return `A domain has no port; ports stand in \`ports\`${advice}`;
  if (text.includes("%")) return "A domain has no percent sign: neither an escape nor a zone id";
  if (/(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$/i.test(text)) {
    return `A domain cannot end in a number unless it is an address in plain decimal${advice}`;
  }
  return `This is not a hostname${advice}`;
}

function explainStar(text: string): string {
  const name = /^\*+\.?([^*]+)$/.exec(text)?.[1];
  const base = name === undefined ? undefined : parseHostnameIdn(name);
  const advice = base === undefined ? "" : `; write \`*.${base}\``;
  return `A \`*\` stands alone or as the whole first label${advice}`;
}

/** The name or address that a browser would make of it, if that is one that we accept. */
function rightSpelling(text: string): string | undefined {
  const url = URL.parse(text.includes("://") ? text : `http://${text}`);
  const host = url?.hostname ?? "";
  if (host.startsWith("[")) return host;
  return parseHostnameIdn(host) !== undefined || parseIpAddress(host) !== undefined ? host : undefined;
}
