/** Times and sizes with their units. Pure. */
import type { Bounds } from "./expect.ts";
import { isNull } from "./expect.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

/** In milliseconds. */
const TIME_UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** In bytes. */
const SIZE_UNITS: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["KiB", 1_024],
  ["MiB", 1_048_576],
  ["GiB", 1_073_741_824],
]);

/** Milliseconds of `250ms`, `10s`, `5m`, `2h`, `7d` or `0`. A bare number is refused: nobody knows its unit. */
export function readDuration(
  report: Report,
  node: TreeNode,
  what: string,
  bounds: Bounds,
): number | undefined {
  const value = withUnit(node, TIME_UNITS) ?? (plainNumber(node) === 0 ? 0 : undefined);
  if (value !== undefined && value >= bounds.min && value <= bounds.max) return value;
  const range = `from ${formatDuration(bounds.min)} to ${formatDuration(bounds.max)}`;
  const hint = plainNumber(node) === undefined ? "such as `10s`" : "with its unit, such as `10s` or `250ms`";
  report.error(node.at, `${what} must be a time ${range}, ${hint}`);
  return undefined;
}

/** Bytes of `64KiB`, `8MiB` or a bare number. */
export function readSize(report: Report, node: TreeNode, what: string, bounds: Bounds): number | undefined {
  const value = withUnit(node, SIZE_UNITS) ?? plainNumber(node);
  if (value !== undefined && value >= bounds.min && value <= bounds.max) return value;
  const range = `from ${formatSize(bounds.min)} to ${formatSize(bounds.max)}`;
  report.error(node.at, `${what} must be a size ${range}, such as \`64KiB\` or a number of bytes`);
  return undefined;
}

export function formatDuration(ms: number): string {
  return format(ms, TIME_UNITS, "ms");
}

export function formatSize(bytes: number): string {
  return format(bytes, SIZE_UNITS, "B");
}

function withUnit(node: TreeNode, units: ReadonlyMap<string, number>): number | undefined {
  if (node.kind !== "scalar" || typeof node.value !== "string") return undefined;
  const match = /^([0-9]{1,12}) ?([A-Za-z]+)$/.exec(node.value);
  if (match === null) return undefined;
  const unit = units.get(match[2] as string);
  return unit === undefined ? undefined : Number(match[1]) * unit;
}

function plainNumber(node: TreeNode): number | undefined {
  if (node.kind !== "scalar" || isNull(node) || !/^[0-9]{1,15}$/.test(node.source)) return undefined;
  return Number(node.source);
}

/** In the largest unit that divides it. */
function format(value: number, units: ReadonlyMap<string, number>, smallest: string): string {
  const [name, unit] = [...units].findLast(([, size]) => value >= size && value % size === 0) ?? [
    smallest,
    1,
  ];
  return `${value / unit}${name}`;
}
