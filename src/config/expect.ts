/** Readers of single values: each says what it expected and found, and goes on. Pure. */
import { CONFIG_KEYS } from "./keys.ts";
import { nearest, quoteName, type Report } from "./report.ts";
import type { MapEntry, Position, TreeNode } from "./tree.ts";

/** A key that is in more sections than these is common, and says nothing of what was meant. */
const MAX_HOMES = 2;

/** A map whose keys are all known. */
export interface Fields<K extends string> {
  readonly at: Position;
  /** Undefined where the key is absent. */
  get(key: K): TreeNode | undefined;
  /** Where the key stands; the map's own place where it is absent. */
  keyAt(key: K): Position;
  has(key: K): boolean;
}

/** `what` names the value in messages: "`listen`", "An entry of `allowlist`". */
export function readMap<K extends string>(
  report: Report,
  node: TreeNode,
  what: string,
  keys: readonly K[],
): Fields<K> | undefined {
  if (node.kind !== "map") return wrong(report, node, `${what} must be a map of keys and values`);
  const known = new Map<string, MapEntry>();
  for (const entry of node.entries) {
    if ((keys as readonly string[]).includes(entry.key)) known.set(entry.key, entry);
    else report.error(entry.keyAt, unknownKey(entry.key, what, keys));
  }
  return {
    at: node.at,
    get: (key) => known.get(key)?.value,
    keyAt: (key) => known.get(key)?.keyAt ?? node.at,
    has: (key) => known.has(key),
  };
}

/** A section may stand there empty, as when all of it is commented out: that is as if it were absent. */
export function present(node: TreeNode | undefined): TreeNode | undefined {
  return node === undefined || isNull(node) ? undefined : node;
}

export function isNull(node: TreeNode): boolean {
  return node.kind === "scalar" && node.value === null;
}

export function readList(report: Report, node: TreeNode, what: string): readonly TreeNode[] | undefined {
  if (node.kind === "list") return node.items;
  return wrong(report, node, `${what} must be a list`);
}

export function readText(report: Report, node: TreeNode, what: string): string | undefined {
  if (node.kind !== "scalar" || typeof node.value !== "string") {
    const hint = node.kind === "scalar" && node.value !== null ? "; put it in quotes" : "";
    return wrong(report, node, `${what} must be text`, hint);
  }
  if (node.value === "") return refuse(report, node, `${what} must not be empty`);
  return node.value;
}

export function readTexts(
  report: Report,
  node: TreeNode,
  what: string,
): readonly { readonly text: string; readonly at: Position }[] | undefined {
  const items = readList(report, node, what);
  if (items === undefined) return undefined;
  return items.flatMap((item) => {
    const text = readText(report, item, `Each of ${what}`);
    return text === undefined ? [] : [{ text, at: item.at }];
  });
}

export function readFlag(report: Report, node: TreeNode, what: string): boolean | undefined {
  if (node.kind === "scalar" && typeof node.value === "boolean") return node.value;
  return wrong(report, node, `${what} must be true or false`);
}

export function readChoice<T extends string>(
  report: Report,
  node: TreeNode,
  what: string,
  choices: readonly T[],
): T | undefined {
  if (node.kind === "scalar") {
    const chosen = choices.find((choice) => choice === node.value);
    if (chosen !== undefined) return chosen;
  }
  const list = choices.map((choice) => `\`${choice}\``).join(choices.length === 2 ? " or " : ", ");
  const expected = `${what} must be ${choices.length > 2 ? "one of " : ""}${list}`;
  if (node.kind !== "scalar" || typeof node.value !== "string") return wrong(report, node, expected);
  const meant = nearest(node.value, choices);
  return refuse(report, node, `${expected}${meant === undefined ? "" : `; did you mean \`${meant}\`?`}`);
}

export interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** A whole number in plain decimal digits. */
export function readInteger(
  report: Report,
  node: TreeNode,
  what: string,
  bounds: Bounds,
): number | undefined {
  const expected = `${what} must be a whole number from ${bounds.min} to ${bounds.max}`;
  if (node.kind !== "scalar" || typeof node.value !== "number") return wrong(report, node, expected);
  const { value } = node;
  if (!/^(?:0|[1-9][0-9]*)$/.test(node.source) || value < bounds.min || value > bounds.max) {
    return refuse(report, node, expected);
  }
  return value;
}

/** Reports at `node` and gives undefined, which stands for a value that was reported. */
function wrong(report: Report, node: TreeNode, expected: string, hint = ""): undefined {
  return refuse(report, node, `${expected}, found ${kindOf(node)}${hint}`);
}

function refuse(report: Report, node: TreeNode, message: string): undefined {
  report.error(node.at, message);
  return undefined;
}

function kindOf(node: TreeNode): string {
  if (node.kind === "list") return "a list";
  if (node.kind === "map") return "a map";
  if (node.value === null) return "nothing";
  if (typeof node.value === "boolean") return `\`${node.value}\``;
  return typeof node.value === "number" ? "a number" : "text";
}

function unknownKey(key: string, what: string, keys: readonly string[]): string {
  const homes = what === "The file" ? homesOf(key) : "";
  if (homes !== "") return `Unknown key ${quoteName(key)} in the file; it stands in ${homes}`;
  const meant = nearest(key, keys);
  if (meant !== undefined) return `Unknown key ${quoteName(key)}; did you mean \`${meant}\`?`;
  const place = what.charAt(0).toLowerCase() + what.slice(1);
  return `Unknown key ${quoteName(key)} in ${place}; known are ${keys.map((known) => `\`${known}\``).join(", ")}`;
}

/** The sections that have such a key: what is indented too little, or was left without its section. */
function homesOf(key: string): string {
  const sections = Object.entries(CONFIG_KEYS).filter(
    ([section, keys]) => section !== "" && keys.includes(key),
  );
  return sections.length > MAX_HOMES ? "" : sections.map(([section]) => `\`${section}\``).join(" or ");
}
