/** What of the host a jail must not see: sockets of its programs, run-time directories, and how its mounts are flagged. */
import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Where programs of every network leave theirs, two folders deep. */
const SHARED_FOLDERS = ["/tmp", "/var/tmp"];
const MOST_LOOKED_AT = 4_096;

/**
 * Paths of sockets that a program may listen on: those of our own network, as the kernel tells them; and of others,
 * what is mounted, what a variable names, and what lies about in shared folders.
 */
export function hostSockets(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const paths = new Set([
    ...parseUnixSockets(readText("/proc/net/unix")),
    ...mountPoints(readText("/proc/self/mountinfo")).map(({ point }) => point),
    ...Object.values(env).flatMap(pathsNamed),
    ...SHARED_FOLDERS.flatMap((folder) => socketsIn(folder)),
  ]);
  return [...paths].filter((path) => kindOf(path) === "socket");
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
  let best: MountPoint = { point: "", flags: [] };
  for (const mount of mountPoints(mountInfo)) {
    // Of two mounts on one point the later is on top.
    if (isInside(path, mount.point) && mount.point.length >= best.point.length) best = mount;
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

interface MountPoint {
  readonly point: string;
  readonly flags: readonly string[];
}

/** proc_pid_mountinfo(5): blanks and their kin are written in octal. */
function mountPoints(mountInfo: string): readonly MountPoint[] {
  return mountInfo.split("\n").flatMap((line) => {
    const [, , , , point, options = ""] = line.split(" ");
    if (point === undefined) return [];
    const decoded = point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    return [{ point: decoded, flags: options.split(",") }];
  });
}

/** A path, or one in an address such as `unix:path=/run/user/1000/bus,guid=…`. */
function pathsNamed(value: string | undefined): readonly string[] {
  const path = /^(?:unix:(?:path=|\/\/)?)?(\/[^,;]*)/.exec(value ?? "")?.[1];
  return path === undefined ? [] : [path];
}

function socketsIn(folder: string, depth = 2): readonly string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).slice(0, MOST_LOOKED_AT);
    return entries.flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isSocket()) return [path];
      return entry.isDirectory() && depth > 1 ? socketsIn(path, depth - 1) : [];
    });
  } catch {
    return [];
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
