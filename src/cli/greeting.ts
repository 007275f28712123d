/** What `serve` says once it listens: where, under which policy, and one line to try. Pure. */
import { join, relative } from "node:path";
import type { Config, Endpoint } from "../model/config.ts";
import { VERSION } from "./version.ts";

export function greeting(config: Config): string {
  const { listen, policy, caDir } = config;
  const ca = shorter(join(caDir, "ca.pem"));
  const lines = [
    `sallyport ${VERSION}: ${policy.mode === "enforce" ? "enforcing" : "EVALUATING ONLY, refusing next to nothing, with"} policy ${policy.digest.slice(0, 12)} of ${shorter(config.file)}`,
    listen.proxy === undefined ? "proxy   none" : `proxy   http://${urlHost(listen.proxy)}`,
    ...(listen.gateway === undefined
      ? []
      : [`gateway port ${listen.gateway.address.port} for ${listen.gateway.interfaces.join(", ")}`]),
    ...(listen.reverse === undefined ? [] : [`reverse http://${urlHost(listen.reverse)}/HOST/PATH`]),
    listen.admin === undefined
      ? "admin   none"
      : `admin   http://${urlHost(listen.admin)}/metrics /healthz /readyz`,
    `CA      ${ca}`,
  ];
  if (listen.proxy !== undefined) lines.push(`try     ${tryLine(config, listen.proxy)}`);
  return `${lines.join("\n")}\n`;
}

/** Works with no network at all: it is refused before anything is looked up, and loopback is where all is listed. */
function tryLine({ policy }: Config, proxy: Endpoint): string {
  const { network } = policy;
  const open = network.kind === "allowlist" && network.rules.some(({ pattern }) => pattern.kind === "any");
  const [sandbox] = policy.sandboxes;
  const user = sandbox?.token === undefined ? "" : `--proxy-user '${sandbox.id}:TOKEN' `;
  return `curl -i -x http://${urlHost(proxy)} ${user}http://${open ? "localhost" : "not-listed.example"}/`;
}

function urlHost({ host, port }: Endpoint): string {
  const dialled = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return dialled.includes(":") ? `[${dialled}]:${port}` : `${dialled}:${port}`;
}

function shorter(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") ? path : short;
}
