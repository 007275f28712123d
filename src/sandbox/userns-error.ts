/** Why a namespace could not be made, in words that say what would help. */
import { readFileSync } from "node:fs";
import { Failure } from "../model/failure.ts";

/** A kernel switch, by its path under /proc/sys; undefined where the kernel has none of that name. */
export type ReadSwitch = (name: string) => string | undefined;

const APPARMOR = "kernel/apparmor_restrict_unprivileged_userns";
const DEBIAN = "kernel/unprivileged_userns_clone";
const MOST = "user/max_user_namespaces";

/** `said`: what `unshare` or the script wrote before it ended. */
export function explainNoNamespace(said: string, read: ReadSwitch = readSwitch): Failure {
  // What went wrong comes first; some programs add where to read on.
  const text = said.trim().split("\n")[0] ?? "";
  return new Failure("E_CONFIG", "operator", `${cause(text, read)} (${text === "" ? "no message" : text})`);
}

function cause(text: string, read: ReadSwitch): string {
  if (!/unshare|uid_map|gid_map|setgroups/.test(text)) return "The jail cannot be set up";
  if (read(MOST) === "0" || /No space left/.test(text)) {
    return `User namespaces are switched off: sysctl -w user.max_user_namespaces=15000 allows them`;
  }
  if (read(DEBIAN) === "0") {
    return "User namespaces are for root alone here: sysctl -w kernel.unprivileged_userns_clone=1 allows them to all";
  }
  if (read(APPARMOR) === "1") {
    return "AppArmor forbids user namespaces: give the node program a profile with the rule `userns,`, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
  }
  return "A user namespace cannot be made: a container's seccomp filter usually forbids it; run the container with --security-opt seccomp=unconfined, or a profile that allows unshare, clone and mount";
}

function readSwitch(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "latin1").trim();
  } catch {
    return undefined;
  }
}
