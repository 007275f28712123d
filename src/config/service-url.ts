/** URLs of services that the gate itself calls. Pure. */
import type { ServiceEndpoint } from "../model/credential.ts";
import { type AbsoluteTarget, parseAbsoluteForm } from "../wire/request-target.ts";
import { readText } from "./expect.ts";
import { isLoopback } from "./ranges.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

/** `what` is the key in backquotes. Clear text is refused but to this machine: a secret goes there. */
export function readServiceUrl(report: Report, node: TreeNode, what: string): ServiceEndpoint | undefined {
  const text = readText(report, node, what);
  if (text === undefined) return undefined;
  const parsed = parseUrl(text);
  if (parsed === undefined) {
    // A user and password would be a secret: the value is not quoted.
    report.error(
      node.at,
      `${what} must begin with \`https://\` and a host, without user, password or fragment`,
    );
    return undefined;
  }
  const { scheme, authority, target } = parsed;
  const { host, port } = authority;
  if (scheme === "http" && !(host.kind === "address" && isLoopback(host.address))) {
    report.error(node.at, `${what} must begin with \`https://\`: a secret is sent there`);
    return undefined;
  }
  const destination =
    host.kind === "name"
      ? ({ kind: "name", host: host.name, port } as const)
      : ({ kind: "address", address: host.address, port } as const);
  return { scheme, destination, target };
}

export function serviceUrl(text: string): ServiceEndpoint {
  const { scheme, authority, target } = parseAbsoluteForm(text, "POST");
  const { host, port } = authority;
  if (host.kind !== "name") throw new TypeError("The default of a service is a name");
  return { scheme, destination: { kind: "name", host: host.name, port }, target };
}

function parseUrl(text: string): AbsoluteTarget | undefined {
  try {
    return parseAbsoluteForm(text, "POST");
  } catch {
    return undefined;
  }
}
