/** Listening addresses: `127.0.0.1:8080`, `[::1]:8080`. Pure. */
import { parseIpAddress } from "../base/ip.ts";
import type { Endpoint } from "../model/config.ts";
import type { Report } from "./report.ts";
import type { TreeNode } from "./tree.ts";

export type EndpointResult =
  | { readonly ok: true; readonly endpoint: Endpoint }
  | { readonly ok: false; readonly problem: string };

export function readEndpoint(report: Report, node: TreeNode, what: string): Endpoint | undefined {
  const parsed = parseEndpoint(node.kind === "scalar" ? String(node.value ?? "") : "");
  if (parsed.ok) return parsed.endpoint;
  report.error(node.at, `${what} ${parsed.problem}`);
  return undefined;
}

/** Port 0 lets the system choose. */
export function parseEndpoint(text: string): EndpointResult {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(text);
  const address = parseIpAddress(match?.[1] ?? match?.[2] ?? "");
  if (match === null || address === undefined || (match[1] !== undefined && !match[1].includes(":"))) {
    return failed(explain(text));
  }
  const port = Number(match[3]);
  if (port > 65_535) return failed("has a port above 65535");
  return { ok: true, endpoint: { host: address.text, port } };
}

/** To be read after the name of the key. */
function explain(text: string): string {
  const bare = parseIpAddress(text.replace(/^\[|\]$/g, ""));
  if (bare !== undefined) {
    const [host, brackets] =
      bare.family === 6 ? [`[${bare.text}]`, ", and brackets around the address"] : [bare.text, ""];
    return `needs a port${brackets}: write \`${host}:8080\``;
  }
  const match = /^(.*?):?([0-9]{1,5})$/.exec(text);
  const [host, port] = [match?.[1], match?.[2]];
  if (host === "" || host === "*") {
    return `must be an address and a port; write \`127.0.0.1:${port}\`, or \`[::]:${port}\` for every address`;
  }
  if (host === "localhost") return `must name an address; write \`127.0.0.1:${port}\` or \`[::1]:${port}\``;
  return "must be an IP address and a port, as in `127.0.0.1:8080` or `[::1]:8080`";
}

function failed(problem: string): EndpointResult {
  return { ok: false, problem };
}
