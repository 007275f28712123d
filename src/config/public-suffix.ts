/** Whether strangers can own names under a wildcard, by the Public Suffix List. The only adapter of `tldts`. */
import { createRequire } from "node:module";
import { parse } from "tldts";

/** `public`: a registry sells names there. `private`: a company gives them to its customers. */
export type Outsiders =
  | { readonly kind: "none" }
  | { readonly kind: "public" | "private"; readonly suffix: string };

/**
 * The list as `tldts` ships it: node n's edges are `edgeStart[n]` up to `edgeStart[n + 1]`, each with a label, whose
 * length is in `edgeLength` and whose text follows its neighbours' in `labelText`, and with a child. A node's flags
 * are 1 for a rule of the public section, 2 for one of the private, 0 for none. `parse` alone cannot say which
 * suffixes lie below a name, and a copy of the list would grow stale.
 */
interface SuffixTrie {
  readonly nodeFlags: ArrayLike<number>;
  readonly edgeStart: ArrayLike<number>;
  readonly edgeLength: ArrayLike<number>;
  readonly edgeChild: ArrayLike<number>;
  readonly labelText: string;
  readonly rulesRoot: number;
}

const PUBLIC_RULE = 1;
const TRIE: SuffixTrie = createRequire(import.meta.url)("tldts/dist/cjs/src/data/trie.js");
const EDGE_OFFSETS = offsets(TRIE.edgeLength);
const CHILDREN = new Map<number, ReadonlyMap<string, number>>();

/**
 * Who may own a name below `base` besides the owner of `base`. A suffix at `base` or anywhere below it counts, and
 * `public` outweighs `private`. A top-level domain that the list does not know counts as public.
 */
export function outsidersUnder(base: string): Outsiders {
  const own = parse(base, { allowPrivateDomains: true, validateHostname: false });
  const atBase = own.publicSuffix === base;
  if (atBase && own.isPrivate !== true) return { kind: "public", suffix: base };
  const node = find(base.split("."));
  const below = node === undefined ? { kind: "none" as const } : worstBelow(node, base);
  if (below.kind === "public") return below;
  return atBase ? { kind: "private", suffix: base } : below;
}

function offsets(lengths: ArrayLike<number>): Uint32Array {
  const starts = new Uint32Array(lengths.length);
  for (let edge = 1; edge < lengths.length; edge++) {
    starts[edge] = (starts[edge - 1] as number) + (lengths[edge - 1] as number);
  }
  return starts;
}

/** The node of a name, if any rule names it or something below it. */
function find(labels: readonly string[]): number | undefined {
  let node: number | undefined = TRIE.rulesRoot;
  for (const label of labels.toReversed()) {
    node = children(node).get(label);
    if (node === undefined) return undefined;
  }
  return node;
}

/** The first public suffix below a node, else the first private one. Every leaf of the trie is a rule. */
function worstBelow(node: number, name: string): Outsiders {
  let worst: Outsiders = { kind: "none" };
  for (const [label, child] of children(node)) {
    const suffix = `${label}.${name}`;
    const flags = TRIE.nodeFlags[child] as number;
    if ((flags & PUBLIC_RULE) !== 0) return { kind: "public", suffix };
    const below = worstBelow(child, suffix);
    if (below.kind === "public") return below;
    if (worst.kind === "none") worst = flags === 0 ? below : { kind: "private", suffix };
  }
  return worst;
}

/** Some nodes have thousands of edges and are asked for often. */
function children(node: number): ReadonlyMap<string, number> {
  const known = CHILDREN.get(node);
  if (known !== undefined) return known;
  const map = new Map<string, number>();
  for (let edge = TRIE.edgeStart[node] as number; edge < (TRIE.edgeStart[node + 1] as number); edge++) {
    const from = EDGE_OFFSETS[edge] as number;
    const label = TRIE.labelText.slice(from, from + (TRIE.edgeLength[edge] as number));
    map.set(label, TRIE.edgeChild[edge] as number);
  }
  CHILDREN.set(node, map);
  return map;
}
