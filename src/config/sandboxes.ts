/** The `sandboxes` section: who may ask, and by what it is known. Pure. */

import { isInterfaceName, matchesInterface } from "../base/interface-name.ts";
import { rangesOverlap } from "../base/ip.ts";
import type { SandboxSetup } from "../model/config.ts";
import type { SandboxSource } from "../model/policy.ts";
import { readId } from "./entry.ts";
import { type Fields, present, readList, readMap, readText } from "./expect.ts";
import { SANDBOX_KEYS } from "./keys.ts";
import { readNetwork } from "./network.ts";
import { type PlacedRange, readRanges } from "./ranges.ts";
import { quoteName, type Report } from "./report.ts";
import type { Scope } from "./scope.ts";
import { readNetns, readVariables } from "./setup.ts";
import { readTemplate } from "./template.ts";
import type { Position, TreeNode } from "./tree.ts";

type SandboxFields = Fields<(typeof SANDBOX_KEYS)[number]>;

export interface ReadSandboxes {
  readonly sources: readonly SandboxSource[];
  readonly setups: readonly SandboxSetup[];
}

interface PlacedSandbox {
  readonly sandbox: SandboxSource;
  readonly setup: SandboxSetup;
  readonly ranges: readonly PlacedRange[];
  readonly at: Position;
}

/** Shorter tokens can be guessed. */
const MIN_TOKEN = 16;

/** `gateway`: the interfaces of that door, where there is one. */
export function readSandboxes(
  scope: Scope,
  node: TreeNode | undefined,
  gateway: readonly string[] | undefined,
): ReadSandboxes {
  const items = node && readList(scope.report, node, "`sandboxes`");
  const placed = (items ?? []).flatMap((item, index) => {
    const sandbox = readSandbox(scope, item, `sandboxes[${index}]`, gateway);
    return sandbox === undefined ? [] : [sandbox];
  });
  checkUnique(scope.report, placed);
  checkOverlaps(scope.report, placed);
  if (gateway !== undefined) checkPorts(scope.report, placed, gateway);
  return { sources: placed.map(({ sandbox }) => sandbox), setups: placed.map(({ setup }) => setup) };
}

function readSandbox(
  scope: Scope,
  node: TreeNode,
  key: string,
  gateway: readonly string[] | undefined,
): PlacedSandbox | undefined {
  const { report } = scope;
  const fields = readMap(report, node, "An entry of `sandboxes`", SANDBOX_KEYS);
  if (fields === undefined) return undefined;
  const id = readId(report, fields.get("id"));
  if (!fields.has("id")) report.error(fields.at, "A sandbox needs an `id`");
  const sourceNode = fields.get("source");
  const ranges = (sourceNode && readRanges(report, sourceNode, "`source`")) ?? [];
  const token = readToken(scope, fields, `${key}.token`);
  const link = readLink(report, fields, gateway !== undefined);
  if (!fields.has("source") && !fields.has("token") && !fields.has("netns")) {
    const message = "Without `source`, `token` or `netns` this sandbox is known to `run` and `attach` alone";
    report.warn(fields.at, message);
  }
  if (sourceNode?.kind === "list" && sourceNode.items.length === 0) {
    report.error(sourceNode.at, "`source` is empty, so no client can match; leave it out or list some");
  }
  const network = readNetwork(scope, fields.get("network"), `${key}.network`);
  if (present(fields.get("network")) === undefined) {
    report.warn(fields.at, "This sandbox has no `network`, so everything is refused to it");
  }
  if (id === undefined) return undefined;
  const source = ranges.map(({ range }) => range);
  const setup = { id, ...readSetup(scope, fields) };
  return { sandbox: { id, source, token, network, ...link }, setup, ranges, at: fields.keyAt("id") };
}

function readToken(scope: Scope, fields: SandboxFields, key: string): string | undefined {
  const node = fields.get("token");
  const template = node && readTemplate(scope, node, { what: "`token`", key, secret: true });
  if (node === undefined || template === undefined) return undefined;
  const only = template.length === 1 ? template[0] : undefined;
  if (only?.kind === "literal" && only.text.length < MIN_TOKEN) {
    scope.report.warn(node.at, `\`token\` is shorter than ${MIN_TOKEN} characters and can be guessed`);
  }
  return key;
}

function readSetup(scope: Scope, fields: SandboxFields): Pick<SandboxSetup, "netns" | "env"> {
  const netns = fields.get("netns");
  const env = fields.get("env");
  return {
    netns: netns && readNetns(scope, netns),
    env: env === undefined ? {} : readVariables(scope, env),
  };
}

/** What else it is known by at the gateway, beside its address. */
function readLink(
  report: Report,
  fields: SandboxFields,
  counts: boolean,
): Pick<SandboxSource, "interface" | "mac"> {
  const via = readLinkText(report, fields, "interface", (text) => isInterfaceName(text) && text !== "lo");
  const mac = readLinkText(report, fields, "mac", (text) =>
    /^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}$/.test(text),
  );
  for (const [key, value] of [
    ["interface", via],
    ["mac", mac],
  ] as const) {
    if (value === undefined) continue;
    const at = fields.keyAt(key);
    if (!counts)
      report.warn(at, `\`${key}\` is not checked at the proxy's door: \`source\` and \`token\` are`);
    else if (!fields.has("source")) report.error(at, `\`${key}\` narrows a \`source\`, and there is none`);
  }
  return {
    ...(via === undefined ? {} : { interface: via }),
    ...(mac === undefined ? {} : { mac: mac.toLowerCase() }),
  };
}

function readLinkText(
  report: Report,
  fields: SandboxFields,
  key: "interface" | "mac",
  fits: (text: string) => boolean,
): string | undefined {
  const node = fields.get(key);
  const text = node && readText(report, node, `\`${key}\``);
  if (node === undefined || text === undefined) return undefined;
  if (fits(text)) return text;
  const expected = key === "mac" ? "a MAC address such as `02:00:00:00:00:11`" : "the name of an interface";
  report.error(node.at, `\`${key}\` must be ${expected}`);
  return undefined;
}

function checkUnique(report: Report, sandboxes: readonly PlacedSandbox[]): void {
  const lines = new Map<string, number>();
  for (const { sandbox, at } of sandboxes) {
    const first = lines.get(sandbox.id);
    if (first === undefined) lines.set(sandbox.id, at.line);
    else report.error(at, `The sandbox ${quoteName(sandbox.id)} is on line ${first} already`);
  }
}

/** What is no interface of the gateway's is the port of a bridge, and the firewall holds that to one sandbox. */
function checkPorts(report: Report, sandboxes: readonly PlacedSandbox[], gateway: readonly string[]): void {
  const lines = new Map<string, number>();
  for (const { sandbox, at } of sandboxes) {
    const { interface: port } = sandbox;
    if (port === undefined || matchesInterface(gateway, port)) continue;
    const first = lines.get(port);
    if (first === undefined) lines.set(port, at.line);
    else report.error(at, `The port ${quoteName(port)} is another sandbox's on line ${first}`);
  }
}

/**
 * Without tokens the address alone tells sandboxes apart. Ranges are aligned, so after sorting by first address an
 * overlap lies between a range and the last one that it does not lie beyond.
 */
function checkOverlaps(report: Report, sandboxes: readonly PlacedSandbox[]): void {
  const placed = sandboxes
    .filter(({ sandbox }) => sandbox.token === undefined)
    .flatMap(({ sandbox, ranges }) => ranges.map(({ range, at }) => ({ id: sandbox.id, range, at })))
    .map((entry) => ({ ...entry, sort: sortKey(entry) }))
    .toSorted((a, b) => (a.sort < b.sort ? -1 : 1));
  let wide = placed[0];
  for (const entry of placed.slice(1)) {
    if (wide === undefined || !rangesOverlap(wide.range, entry.range)) wide = entry;
    else if (wide.id !== entry.id) {
      report.error(
        entry.at,
        `This \`source\` overlaps with that of ${quoteName(wide.id)} on line ${wide.at.line}, and neither has a token`,
      );
    }
  }
}

function sortKey({ range }: PlacedRange): string {
  const { family, octets } = range.base;
  return `${family}${Buffer.from(octets).toString("hex")}${String(range.prefixBits).padStart(3, "0")}`;
}
