/** The URL of something that the gate itself posts to: a hook, a webhook. Pure. */
import type { Destination } from "../model/exchange.ts";
import type { HttpEndpoint } from "../model/policy.ts";
import { type AbsoluteTarget, parseAbsoluteForm } from "../wire/request-target.ts";
import { readText } from "./expect.ts";
import { isLoopback } from "./ranges.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

export function readHttpEndpoint(report: Report, node: TreeNode): HttpEndpoint | undefined {
  const text = readText(report, node, "`url`");
  if (text === undefined) return undefined;
  const parsed = parseUrl(text);
  if (parsed === undefined) {
    // A user and password would be a secret: the value is not quoted.
    report.error(
      node.at,
      "`url` must begin with `http://` or `https://` and a host, without user, password or fragment",
    );
    return undefined;
  }
  const { scheme, authority, target } = parsed;
  const { host, port } = authority;
  const destination: Destination =
    host.kind === "name"
      ? { kind: "name", host: host.name, port }
      : { kind: "address", address: host.address, port };
  return { kind: "http", scheme, destination, target };
}

/** In clear text, and not on this machine. */
export function isOverheard({ scheme, destination }: HttpEndpoint): boolean {
  return scheme === "http" && !(destination.kind === "address" && isLoopback(destination.address));
}

function parseUrl(text: string): AbsoluteTarget | undefined {
  try {
    return parseAbsoluteForm(text, "POST");
  } catch {
    return undefined;
  }
}
