/** Namespaces as others make them: `unshare`, `ip netns`, bubblewrap, and a real container of podman's. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endOf, type JailSetup, ORDINARY_UID } from "./jail.ts";
import { BASE_ENV, unrefAll } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";

export interface Made {
  /** A process in the namespace; it ends when this does. */
  readonly pid: number;
  /** What `attach` is given to find it. */
  readonly options: readonly string[];
}

/** Who makes it: the user of `setup`. */
export type Maker = (internet: Internet, setup: JailSetup) => Promise<Made>;

const STAY = "echo ready; exec sleep 1000";
const ROOT = process.getuid?.() === 0;

export const MAKERS: Readonly<Record<"unshare" | "ip netns" | "bubblewrap" | "podman", Maker>> = {
  unshare: byUnshare,
  "ip netns": byIpNetns,
  bubblewrap: byBubblewrap,
  podman: byPodman,
};

/** Runs a program in the network of this process, as whoever may. */
export async function insideOf(internet: Internet, pid: number, command: readonly string[]): Promise<string> {
  const enter = ["-t", `${pid}`, "-n", ...(ROOT ? [] : ["-U", "--preserve-credentials"])];
  const { stdout, stderr } = await endOf(
    internet,
    spawn("nsenter", [...enter, "--", ...command], { env: BASE_ENV }),
  );
  return stdout + stderr;
}

/** The same with all that is the process's own: its files, and what programs it has. */
export async function wholeInside(
  internet: Internet,
  pid: number,
  command: readonly string[],
): Promise<string> {
  const user = ROOT ? [] : ["-U", "--preserve-credentials"];
  const enter = ["-t", `${pid}`, "-m", "-n", "-i", ...user];
  const child = spawn("nsenter", [...enter, "--", ...command], { env: { PATH: "/usr/bin" } });
  const { stdout, stderr } = await endOf(internet, child);
  return stdout + stderr;
}

async function byUnshare(internet: Internet, { prefix }: JailSetup): Promise<Made> {
  const alone = isRoot(prefix) ? ["unshare", "-n"] : ["unshare", "-Urn"];
  const child = await start(internet, [...prefix, ...alone, "sh", "-c", STAY]);
  return byPid(child.pid ?? 0);
}

/** In a mount namespace of its own, so that the machine's `/run/netns` stays as it is. */
async function byIpNetns(internet: Internet, { prefix }: JailSetup): Promise<Made> {
  const own = isRoot(prefix) ? ["unshare", "-m"] : ["unshare", "-Urmn"];
  const script = `mount -t tmpfs x /run && ip netns add box && exec ip netns exec box sh -c '${STAY}'`;
  const propagation = ["--propagation", "private"];
  const child = await start(internet, [...prefix, ...own, ...propagation, "sh", "-c", script]);
  const pid = child.pid ?? 0;
  const root = `/proc/${pid}/root`;
  return { pid, options: ["--netns", `${root}/run/netns/box`] };
}

async function byBubblewrap(internet: Internet, { prefix }: JailSetup): Promise<Made> {
  const alone = ["--die-with-parent", "--unshare-user", "--unshare-net", "--uid", "1000"];
  const files = ["--dev-bind", "/", "/"];
  const child = await start(internet, [...prefix, "bwrap", ...alone, ...files, "sh", "-c", STAY]);
  return byPid(lastChildOf(child.pid ?? 0));
}

let containers = 0;

/**
 * `--network none`, with a root file system of busybox, and this machine's programs beside it. There are no control groups to be had in most machines that
 * tests run on, and none that podman would find here.
 */
async function byPodman(internet: Internet, { prefix, directory }: JailSetup): Promise<Made> {
  containers += 1;
  const folder = join(internet.directory, `podman-${containers}`);
  const owner = isRoot(prefix) ? 0 : ORDINARY_UID;
  const root = makeRoot(folder);
  const own = ["", "/store", "/run", "/tmp", "/own"].map((name) => `${folder}${name}`);
  for (const path of own) mkdirSync(path, { recursive: true });
  if (ROOT) for (const path of [...own, ...root]) chownSync(path, owner, owner);
  chmodSync(folder, 0o755);
  const pidFile = `${folder}/run/pid`;
  const places = ["--root", `${folder}/store`, "--runroot", `${folder}/run`, "--tmpdir", `${folder}/tmp`];
  const ways = ["--runtime", "crun", "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs"];
  const limits = ["--cgroups=disabled", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
  const podman = [
    ...["podman", ...places, ...ways, "--events-backend", "file", "run", "--rm", "--pidfile", pidFile],
    ...["-v", "/usr:/usr:ro", "-v", `${directory}:/setup:ro`, "--network", "none", ...limits],
    ...["--rootfs", `${folder}/root`, "sh", "-c", STAY],
  ];
  const own0 = owner === 0 ? ["unshare", "-m"] : ["unshare", "-Urm"];
  const unseen = 'mount -t tmpfs x /sys/fs/cgroup && exec "$@"';
  const apart = [...own0, "--propagation", "private", "sh", "-c", unseen, "x"];
  // It takes the one user of its namespace for enough.
  const env = { ...BASE_ENV, HOME: `${folder}/own`, _CONTAINERS_USERNS_CONFIGURED: "1" };
  const child = await start(internet, [...prefix, ...apart, ...podman], env);
  const pid = Number(readFileSync(pidFile, "latin1"));
  // Its monitor is nobody's child, and ends with it.
  internet.onClose(async () => {
    const gone = child.exitCode === null ? once(child, "exit") : undefined;
    kill(pid);
    await gone;
  });
  return byPid(pid);
}

/** The folders that it made. */
function makeRoot(folder: string): readonly string[] {
  const root = `${folder}/root`;
  const folders = ["", "/bin", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr"].map(
    (name) => root + name,
  );
  for (const path of folders) mkdirSync(path, { recursive: true });
  copyFileSync("/bin/busybox", `${root}/bin/busybox`);
  for (const name of ["sh", "sleep"]) symlinkSync("busybox", `${root}/bin/${name}`);
  for (const name of ["lib", "lib64"]) symlinkSync(`usr/${name}`, `${root}/${name}`);
  return folders;
}

/** Resolves once it says that it is there. */
async function start(
  internet: Internet,
  [file = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>> = BASE_ENV,
): Promise<ChildProcess> {
  const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"], cwd: "/" });
  let said = "";
  child.stderr.on("data", (bytes: Buffer) => {
    said += bytes.toString("utf8");
  });
  internet.onClose(() => child.kill("SIGKILL"));
  const gone = once(child, "exit").then(() => {
    throw new Error(`${args.join(" ")} ended: ${said}`);
  });
  await Promise.race([once(createInterface({ input: child.stdout }), "line"), gone]);
  gone.catch(() => undefined);
  unrefAll(child);
  return child;
}

function byPid(pid: number): Made {
  return { pid, options: ["--pid", `${pid}`] };
}

/** Bubblewrap starts what it was asked for as a child, or a child's. */
function lastChildOf(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim();
  return children === "" ? pid : lastChildOf(Number(children.split(" ").at(-1)));
}

function isRoot(prefix: readonly string[]): boolean {
  return ROOT && prefix.length === 0;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
