/** Puts the gateway's nft tables in force, lets their redirection go, and takes them away. */
import { spawn } from "node:child_process";
import type { Config, GatewayEndpoint } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { renderRelease, renderRemoval, renderTables } from "./nft.ts";
import { toolPath } from "./tools.ts";

export interface Applied {
  /** The kernel cannot tell bridges apart: of a shared bridge, only ports and MAC addresses that `sandboxes` names are kept apart. */
  readonly bridgeNames: boolean;
}

/** Rejects with `E_CONFIG`, and the tables are then as they were. */
export async function applyFirewall(gateway: GatewayEndpoint, config: Config): Promise<Applied> {
  const whole = await nft(renderTables(gateway, config, { bridgeNames: true }));
  if (whole === undefined) return { bridgeNames: true };
  if (!/ibrname/.test(whole)) throw refused(whole);
  const less = await nft(renderTables(gateway, config, { bridgeNames: false }));
  if (less !== undefined) throw refused(less);
  return { bridgeNames: false };
}

/** New connections are redirected no more; nothing that was closed opens. */
export async function releaseFirewall(): Promise<void> {
  const trouble = await nft(renderRelease());
  if (trouble !== undefined) throw refused(trouble);
}

export async function removeFirewall(): Promise<void> {
  const trouble = await nft(renderRemoval());
  if (trouble !== undefined) throw refused(trouble);
}

/** What nft has to complain of; undefined where it did everything. */
function nft(script: string): Promise<string | undefined> {
  const child = spawn(toolPath("nft"), ["-f", "-"], {
    stdio: ["pipe", "ignore", "pipe"],
    env: { LC_ALL: "C" },
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (said.length < 4_096) said += text;
  });
  // It may end before it has read everything; its exit says so.
  child.stdin.on("error", () => {});
  child.stdin.end(script);
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => resolve(code === 0 ? undefined : said || `it ended with ${code}`));
  });
}

function refused(trouble: string): Failure {
  const [first = ""] = trouble.trim().split("\n");
  const what = first.replace(/^\/dev\/stdin:/, "line ");
  const advice = /not permitted/.test(trouble)
    ? "; it needs root or CAP_NET_ADMIN in the network namespace where the interfaces are"
    : "";
  return new Failure("E_CONFIG", "operator", `The firewall cannot be applied: nft: ${what}${advice}`);
}
