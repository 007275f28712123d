/** How nft is written: chains, sets, quoted names, and lines that drop. Pure. */

export function entering(interfaces: readonly string[], verdict: string): string[] {
  return interfaces.map((pattern) => `iifname ${quoted(pattern)} ${verdict}`);
}

export function baseChain(name: string, hook: string, lines: readonly string[]): string[] {
  return chain(name, [`type ${hook}`, "policy accept", ...lines]);
}

export function chain(name: string, lines: readonly string[]): string[] {
  return [`\tchain ${name} {`, ...lines.map((line) => `\t\t${line}`), "\t}"];
}

export function setOf(elements: readonly string[]): string {
  return `{ ${[...new Set(elements)].join(", ")} }`;
}

/** Names are checked when the config is read: nothing in one ends the quotation. */
export function quoted(name: string): string {
  return `"${name}"`;
}

export function dropped(field: string, values: readonly string[], more = ""): string[] {
  return values.length === 0 ? [] : [`${field} ${setOf(values)}${more} drop`];
}
