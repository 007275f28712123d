/** The system's programs that make and enter namespaces, by absolute path. */
import { accessSync, constants } from "node:fs";
import { Failure } from "../model/failure.ts";

/** An ordinary user's PATH often lacks the sbin folders, and may begin with anything. */
const FOLDERS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];

const PACKAGES = {
  unshare: "util-linux",
  nsenter: "util-linux",
  setpriv: "util-linux",
  mount: "util-linux or mount",
  ip: "iproute2",
  nft: "nftables",
  env: "coreutils",
  sh: "dash or bash",
} as const;

export type Tool = keyof typeof PACKAGES;

/** Throws `E_CONFIG` where the program is missing. */
export function toolPath(tool: Tool): string {
  const found = findProgram(tool);
  if (found !== undefined) return found;
  const advice = `install the package ${PACKAGES[tool]}`;
  throw new Failure("E_CONFIG", "operator", `The program ${tool} is needed and not there; ${advice}`);
}

/** In the system's own folders alone. */
export function findProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
