/** Names of network interfaces, and patterns such as `veth-*`. Pure. */

/** At most 15 characters (IFNAMSIZ), of those that need no quoting anywhere. */
export function isInterfaceName(text: string): boolean {
  return /^[A-Za-z0-9_.:@+-]{1,15}$/.test(text) && text !== "." && text !== "..";
}

/** A name, or the beginning of one and `*`; `*` alone would be every interface, the way out included. */
export function isInterfacePattern(text: string): boolean {
  return isInterfaceName(text.endsWith("*") ? text.slice(0, -1) : text);
}

export function matchesInterface(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
