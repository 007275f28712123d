/** A jail and the command in it: new namespaces with no way out but the listeners that are handed to us. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { giveOver, HandOverError, type Openings, release, takeOver } from "./hand-over.ts";
import { outerScript, STARTED } from "./jail-script.ts";
import { type JailRequest, planJail } from "./plan.ts";
import { explainNoNamespace } from "./userns-error.ts";

export interface JailOptions extends JailRequest {
  readonly ports: readonly number[];
  /** Takes the open sockets over; the command starts when it is done. */
  readonly onOpen: (openings: Openings) => void;
  /** Called where the command shares the process namespace, since /proc cannot be mounted here. */
  readonly onSharedProcesses: () => void;
}

export interface Jail {
  /** The command's exit status, 128 and the number where a signal ended it. */
  readonly ended: Promise<number>;
  /** Hands a signal on to the command. */
  signal(name: NodeJS.Signals): void;
}

/** Resolves once the command runs. Throws `E_CONFIG` where the machine does not let a jail be made. */
export async function startJail(options: JailOptions): Promise<Jail> {
  const { plan, files } = planJail(options);
  closeInherited();
  const child = spawn(plan.tools.sh, ["-c", outerScript(plan)], {
    stdio: ["inherit", "inherit", "inherit", "ipc", "pipe"],
    env: options.env,
  });
  const ended = endOf(child);
  const status = statusOf(child);
  try {
    const order = {
      kind: "open",
      ports: options.ports,
      first: true,
      exclusive: false,
      nameServers: [],
      files,
    } as const;
    giveOver(await takeOver(child, order), options.onOpen);
  } catch (error) {
    child.kill("SIGKILL");
    await ended;
    throw error instanceof HandOverError ? explainNoNamespace(await status) : error;
  }
  release(child);
  const said = await status;
  const line = said.split("\n").find((one) => one.startsWith(STARTED));
  if (line === undefined) {
    child.kill("SIGKILL");
    throw explainNoNamespace(said);
  }
  if (line !== STARTED) options.onSharedProcesses();
  return { ended, signal: (name) => signalCommand(child, name, line === STARTED) };
}

/** All that the script says before it becomes the command. */
async function statusOf(child: ChildProcess): Promise<string> {
  const stream = child.stdio[4] as Readable | null | undefined;
  let text = "";
  if (stream === null || stream === undefined) return text;
  stream.setEncoding("latin1");
  for await (const piece of stream) text = (text + String(piece)).slice(0, 4_096);
  return text;
}

function endOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("error", () => resolve(1));
    child.once("exit", (code, signal) => {
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/** Descriptors that came with us past the first three are nobody's in the jail; our own close by themselves. */
function closeInherited(): void {
  const CLOSE_ON_EXEC = 0o2000000;
  // biome-ignore lint/style/noProcessEnv: our own channel, where a test or a supervisor started us
  const channel = Number(process.env["NODE_CHANNEL_FD"] ?? -1);
  for (const name of readdirSync("/proc/self/fd")) {
    const fd = Number(name);
    if (fd <= 2 || fd === channel) continue;
    const flags = /^flags:\s+([0-7]+)/m.exec(fdInfo(fd))?.[1];
    if (flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0) closeSync(fd);
  }
}

function fdInfo(fd: number): string {
  try {
    return readFileSync(`/proc/self/fdinfo/${fd}`, "latin1");
  } catch {
    return "";
  }
}

/** Behind the process that we started stand the jail's first process and, as its child, the command. */
function signalCommand(child: ChildProcess, name: NodeJS.Signals, ownProcesses: boolean): void {
  const { pid } = child;
  if (pid === undefined) return;
  const target = ownProcesses ? childOf(childOf(pid)) : pid;
  try {
    process.kill(target ?? pid, name);
  } catch {
    // It has just ended.
  }
}

function childOf(pid: number | undefined): number | undefined {
  if (pid === undefined) return undefined;
  try {
    const first = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ")[0];
    return first === undefined || first === "" ? undefined : Number(first);
  } catch {
    return undefined;
  }
}
