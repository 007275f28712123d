/** What of the host a jail must not see: sockets of its programs, run-time directories, and how its mounts are flagged. */
import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** A path where a socket stands that some program listens on. Those that are not there any more are left out. */
export function hostSockets(): readonly string[] {
  const paths = parseUnixSockets(readText("/proc/net/unix"));
  return paths.filter((path) => kindOf(path) === "socket");
}

/** Reads /proc/net/unix: absolute paths, each once. Abstract sockets (`@`) belong to the network namespace. */
export function parseUnixSockets(text: string): readonly string[] {
  const paths = text.split("\n").map((line) => /^(?:\S+ +){7}(\/.*)$/.exec(line.trimStart())?.[1]);
  return [...new Set(paths.filter((path) => path !== undefined))];
}

/** The flags of the mount that a path is on, of those that a user namespace may not drop. */
export function lockedFlags(
  path: string,
  mountInfo: string = readText("/proc/self/mountinfo"),
): readonly string[] {
  let best: { readonly length: number; readonly flags: readonly string[] } = { length: -1, flags: [] };
  for (const line of mountInfo.split("\n")) {
    const [, , , , point = "", options = ""] = line.split(" ");
    const place = point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    const covers = place === "/" || path === place || path.startsWith(`${place}/`);
    // Of two mounts on one point the later is on top.
    if (covers && place.length >= best.length) best = { length: place.length, flags: options.split(",") };
  }
  return best.flags.filter((flag) => LOCKED.has(flag));
}

const LOCKED: ReadonlySet<string> = new Set([
  "nosuid",
  "nodev",
  "noexec",
  "noatime",
  "nodiratime",
  "relatime",
]);

/** The path without symbolic links; of a link that leads nowhere, where it points. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return danglingTarget(path);
  }
}

export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

export function kindOf(path: string): "file" | "directory" | "socket" | "other" | undefined {
  try {
    const stat = statSync(path);
    if (stat.isFile()) return "file";
    if (stat.isDirectory()) return "directory";
    return stat.isSocket() ? "socket" : "other";
  } catch {
    return undefined;
  }
}

function danglingTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? resolve(dirname(path), readlinkSync(path)) : undefined;
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
