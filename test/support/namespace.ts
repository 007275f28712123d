/** One network namespace, seen from the test process: sockets made in it, and programs started in it. */
import type { ChildProcess, SpawnOptions } from "node:child_process";
import { spawn } from "node:child_process";
import type { Socket as Datagrams } from "node:dgram";
import { once } from "node:events";
import type { Server, Socket } from "node:net";
import { fileURLToPath } from "node:url";
import type { Report } from "./agent.ts";

export interface Namespace {
  readonly pid: number;
  /** A listener whose connections arrive in this process. Half-open connections stay open. */
  listen(host: string, port: number): Promise<Server>;
  bind(host: string, port: number): Promise<Datagrams>;
  /** One datagram, thrown away by whoever gets it. */
  sendDatagram(host: string, port: number): Promise<void>;
  /** Rejects with the system's error code as its message. */
  connect(host: string, port: number, from?: string): Promise<Socket>;
  /** Starts a program here; it dies with the test process. */
  spawn(command: readonly string[], options?: SpawnOptions): ChildProcess;
  close(): void;
}

export interface NamespaceOptions {
  /** A user namespace of one's own, as an ordinary user needs it. */
  readonly rootless: boolean;
  /** The namespace whose user namespace to share. */
  readonly beside?: Namespace;
}

interface Waiting {
  resolve(handle: unknown): void;
  reject(error: Error): void;
}

/** What every program that a test starts may count on. */
export const BASE_ENV = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LC_ALL: "C.UTF-8",
};

const AGENT = fileURLToPath(new URL("./agent.ts", import.meta.url));

export async function createNamespace(options: NamespaceOptions): Promise<Namespace> {
  const command = [...holder(options), process.execPath, "--disable-warning=ExperimentalWarning", AGENT];
  const agent = spawn(command[0] ?? "", command.slice(1), {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: BASE_ENV,
  });
  const waiting = new Map<number, Waiting>();
  await ready(agent);
  agent.on("message", (report: Report, handle: unknown) => settle(waiting, report, handle));
  agent.channel?.unref();
  agent.unref();
  return namespaceOf(agent, waiting, options.rootless);
}

function namespaceOf(agent: ChildProcess, waiting: Map<number, Waiting>, rootless: boolean): Namespace {
  const pid = agent.pid ?? 0;
  const enter = ["nsenter", "-t", String(pid), "-n", ...(rootless ? ["-U", "--preserve-credentials"] : [])];
  const prefix = [...enter, "--", "setpriv", "--pdeathsig", "KILL", "--"];
  let last = 0;
  function ask(order: object): Promise<unknown> {
    last += 1;
    const id = last;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      agent.channel?.ref();
      agent.send({ id, ...order });
    }).finally(() => {
      if (waiting.size === 0) agent.channel?.unref();
    });
  }
  return {
    pid,
    async listen(host, port) {
      const server = (await ask({ op: "listen", host, port })) as Server & { allowHalfOpen: boolean };
      server.allowHalfOpen = true;
      // Small answers of several writes would else wait for acknowledgements.
      server.prependListener("connection", (socket) => socket.setNoDelay(true));
      return server;
    },
    async bind(host, port) {
      return (await ask({ op: "bind", host, port })) as Datagrams;
    },
    async sendDatagram(host, port) {
      await ask({ op: "send", host, port });
    },
    async connect(host, port, from) {
      const socket = (await ask({ op: "connect", host, port, from })) as Socket;
      socket.setNoDelay(true);
      socket.allowHalfOpen = true;
      return socket;
    },
    spawn(command, spawnOptions = {}) {
      const [file = "", ...args] = [...prefix, ...command];
      return spawn(file, args, { env: BASE_ENV, ...spawnOptions });
    },
    close() {
      agent.kill("SIGKILL");
    },
  };
}

/** A test that failed in its preparation then ends all the same, and the program with it. */
export function unrefAll(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref();
}

function holder({ rootless, beside }: NamespaceOptions): readonly string[] {
  if (!rootless) return ["unshare", "-n", "--"];
  if (beside === undefined) return ["unshare", "-Urn", "--"];
  const enter = ["nsenter", "-t", String(beside.pid), "-U", "--preserve-credentials", "--"];
  return [...enter, "unshare", "-n", "--"];
}

async function ready(agent: ChildProcess): Promise<void> {
  const gone = once(agent, "exit").then(([code]) => {
    throw new Error(`The namespace's agent ended with ${code}: are network namespaces allowed here?`);
  });
  await Promise.race([once(agent, "message"), gone]);
  gone.catch(() => undefined);
}

function settle(waiting: Map<number, Waiting>, report: Report, handle: unknown): void {
  if (!("id" in report)) return;
  const one = waiting.get(report.id);
  waiting.delete(report.id);
  if (report.error === undefined) one?.resolve(handle);
  else one?.reject(new Error(report.error));
}
