/** Finds the entries of a host in time proportional to its labels, however many patterns there are. Pure. */
import { isSpecialUse } from "../base/hostname.ts";
import type { Hostname, IpAddress } from "../model/exchange.ts";
import type { PatternSource } from "../model/pattern.ts";

/** Entries by pattern. Entries of one pattern stay in the order they were written in. */
export interface HostTrie<Entry> {
  readonly size: number;
  readonly exact: ReadonlyMap<string, readonly Entry[]>;
  /** By canonical text. */
  readonly addresses: ReadonlyMap<string, readonly Entry[]>;
  /** Reversed labels: `*.example.com` hangs below `com`, then `example`. */
  readonly wildcards: Branch<Entry>;
  readonly any: readonly Entry[];
}

/** A `Map`, not an object: `constructor` and `__proto__` are labels like others. */
interface Branch<Entry> {
  children: Map<string, Branch<Entry>> | undefined;
  entries: Entry[] | undefined;
}

export function buildHostTrie<Entry>(items: Iterable<readonly [PatternSource, Entry]>): HostTrie<Entry> {
  const exact = new Map<string, Entry[]>();
  const addresses = new Map<string, Entry[]>();
  const wildcards: Branch<Entry> = { children: undefined, entries: undefined };
  const any: Entry[] = [];
  let size = 0;
  for (const [pattern, entry] of items) {
    size++;
    if (pattern.kind === "exact") append(exact, pattern.host, entry);
    else if (pattern.kind === "address") append(addresses, pattern.address.text, entry);
    else if (pattern.kind === "wildcard") hang(wildcards, pattern.base, entry);
    else any.push(entry);
  }
  return { size, exact, addresses, wildcards, any };
}

/**
 * The entries of the most specific pattern: the exact name, else the longest wildcard, else `*`. A name that means
 * something else on every network (`base/hostname.ts`) has its exact entries alone.
 */
export function findMostSpecific<Entry>(trie: HostTrie<Entry>, host: Hostname): readonly Entry[] {
  const exact = trie.exact.get(host);
  if (exact !== undefined) return exact;
  if (isSpecialUse(host)) return [];
  return coveringWildcards(trie.wildcards, host).at(-1) ?? trie.any;
}

/** The entries of every pattern that covers the name, the widest first; special-use names are covered like others. */
export function findEvery<Entry>(trie: HostTrie<Entry>, host: Hostname): readonly Entry[] {
  return [...trie.any, ...coveringWildcards(trie.wildcards, host).flat(), ...(trie.exact.get(host) ?? [])];
}

/** An address literal has the entries of that very literal, never those of a name or of `*`. */
export function findAddress<Entry>(trie: HostTrie<Entry>, address: IpAddress): readonly Entry[] {
  return trie.addresses.get(address.text) ?? [];
}

function append<Entry>(map: Map<string, Entry[]>, key: string, entry: Entry): void {
  const entries = map.get(key);
  if (entries === undefined) map.set(key, [entry]);
  else entries.push(entry);
}

function hang<Entry>(root: Branch<Entry>, base: string, entry: Entry): void {
  let branch = root;
  for (const label of base.split(".").reverse()) {
    branch.children ??= new Map();
    let child = branch.children.get(label);
    if (child === undefined) {
      child = { children: undefined, entries: undefined };
      branch.children.set(label, child);
    }
    branch = child;
  }
  branch.entries ??= [];
  branch.entries.push(entry);
}

/** The widest first. The walk stops above the leftmost label, so that a wildcard never covers its own base. */
function coveringWildcards<Entry>(root: Branch<Entry>, host: Hostname): readonly (readonly Entry[])[] {
  const found: (readonly Entry[])[] = [];
  let branch: Branch<Entry> | undefined = root;
  let end = host.length;
  while (true) {
    const dot = host.lastIndexOf(".", end - 1);
    branch = dot === -1 ? undefined : branch.children?.get(host.slice(dot + 1, end));
    if (branch === undefined) return found;
    if (branch.entries !== undefined) found.push(branch.entries);
    end = dot;
  }
}
