/** URLs of what the gate itself calls: a hook, a webhook, a token endpoint, a vault. Pure. */
import type { ServiceEndpoint } from "../model/credential.ts";
import type { HttpEndpoint } from "../model/policy.ts";
import { type AbsoluteTarget, parseAbsoluteForm } from "../wire/request-target.ts";
import { readText } from "./expect.ts";
import { isLoopback } from "./ranges.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

export function readHttpEndpoint(report: Report, node: TreeNode): HttpEndpoint | undefined {
  const endpoint = readUrl(report, node, "`url`", "`http://` or `https://`");
  return endpoint && { kind: "http", ...endpoint };
}

/** `what` is the key in backquotes. Clear text is refused but to this machine: a secret goes there. */
export function readServiceUrl(report: Report, node: TreeNode, what: string): ServiceEndpoint | undefined {
  const endpoint = readUrl(report, node, what, "`https://`");
  if (endpoint === undefined || !isOverheard(endpoint)) return endpoint;
  report.error(node.at, `${what} must begin with \`https://\`: a secret is sent there`);
  return undefined;
}

/** One that the program itself has for a default. */
export function serviceUrl(text: string): ServiceEndpoint {
  return endpointOf(parseAbsoluteForm(text, "POST"));
}

/** In clear text, and not on this machine. */
export function isOverheard({ scheme, destination }: ServiceEndpoint): boolean {
  return scheme === "http" && !(destination.kind === "address" && isLoopback(destination.address));
}

function readUrl(report: Report, node: TreeNode, what: string, begin: string): ServiceEndpoint | undefined {
  const text = readText(report, node, what);
  if (text === undefined) return undefined;
  try {
    return endpointOf(parseAbsoluteForm(text, "POST"));
  } catch {
    // A user and password would be a secret: the value is not quoted.
    report.error(node.at, `${what} must begin with ${begin} and a host, without user, password or fragment`);
    return undefined;
  }
}

function endpointOf({ scheme, authority, target }: AbsoluteTarget): ServiceEndpoint {
  const { host, port } = authority;
  if (host.kind === "name") return { scheme, destination: { kind: "name", host: host.name, port }, target };
  return { scheme, destination: { kind: "address", address: host.address, port }, target };
}
