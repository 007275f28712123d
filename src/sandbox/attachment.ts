/** A namespace that goes out through us: its listeners, as long as it is there. */
import type { Socket as Datagrams } from "node:dgram";
import { readFileSync, readlinkSync, statSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { enterNamespace } from "./enter.ts";
import type { Openings } from "./hand-over.ts";

export interface Target {
  /** Path of the network namespace. */
  readonly path: string;
  /** The process that it is named by; the namespace ends with it. */
  readonly pid: number | undefined;
}

export interface AttachmentOptions {
  readonly target: Target;
  /** Attach although the namespace has other ways out. */
  readonly force: boolean;
  /** Starts accepting on a listener. */
  readonly accept: (handle: Server) => Server;
  /** Starts answering DNS on a socket. */
  readonly answer: (socket: Datagrams) => void;
}

/** Resolvers that stand in a resolv.conf as loopback addresses: of systemd-resolved, and of Docker. */
const LOCAL_RESOLVERS = ["127.0.0.53", "127.0.0.11"];
const MOST_RESOLV_CONF = 65_536;

export class Attachment {
  readonly #options: AttachmentOptions;
  readonly #identity: string | undefined;
  readonly #servers = new Map<number, Server>();
  readonly #sockets: Datagrams[] = [];
  #closed = false;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#identity = identityOf(options.target);
  }

  /** Whether the namespace is still the one that was there at the start. */
  get alive(): boolean {
    return this.#identity !== undefined && identityOf(this.#options.target) === this.#identity;
  }

  /** Resolves with the ports that the namespace's own programs have taken. Throws `E_CONFIG`. */
  async open(ports: readonly number[]): Promise<readonly number[]> {
    const { force } = this.#options;
    const nameServers = [...new Set([...LOCAL_RESOLVERS, ...nameServersOf(this.#options.target)])];
    return this.#enter({ ports, first: true, exclusive: !force, nameServers });
  }

  /** Listens on what is new and stops where nothing is asked for any more; connections that are open stay. */
  async update(ports: readonly number[]): Promise<readonly number[]> {
    for (const [port, server] of this.#servers) {
      if (ports.includes(port)) continue;
      server.close();
      this.#servers.delete(port);
    }
    const added = ports.filter((port) => !this.#servers.has(port));
    if (added.length === 0) return [];
    return this.#enter({ ports: added, first: false, exclusive: false, nameServers: [] });
  }

  /** Lets go of the namespace: as long as one listener stands, it cannot end. */
  close(): void {
    this.#closed = true;
    for (const server of this.#servers.values()) server.close();
    for (const socket of this.#sockets) socket.close();
    this.#servers.clear();
    this.#sockets.length = 0;
  }

  async #enter(order: {
    readonly ports: readonly number[];
    readonly first: boolean;
    readonly exclusive: boolean;
    readonly nameServers: readonly string[];
  }): Promise<readonly number[]> {
    const { path } = this.#options.target;
    let taken: readonly number[] = [];
    await enterNamespace({
      path,
      order: { kind: "open", ...order, files: [] },
      onOpen: (openings) => {
        this.#take(openings);
        taken = openings.taken;
      },
    });
    return taken;
  }

  #take({ tcp, udp }: Openings): void {
    for (const [port, handle] of tcp) this.#servers.set(port, this.#options.accept(handle));
    for (const socket of udp) {
      this.#options.answer(socket);
      this.#sockets.push(socket);
    }
    if (this.#closed) this.close();
  }
}

/** What tells one namespace from another that has its name; undefined where there is none, or no process. */
function identityOf({ path, pid }: Target): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    // A number comes back with another process, and with the number its path.
    return pid === undefined ? `${dev}:${ino}` : `${readlinkSync(path)} ${startOf(pid)}`;
  } catch {
    return undefined;
  }
}

/** Field 22 of proc_pid_stat(5); the name in field 2 may hold anything. */
function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Those of the namespace's own resolv.conf that only an address of its loopback can answer for rightly. */
function nameServersOf({ path, pid }: Target): readonly string[] {
  const name = /^(?:\/var)?\/run\/netns\/([^/]+)$/.exec(path)?.[1];
  const root = pid === undefined ? `/etc/netns/${name ?? ""}` : join("/proc", `${pid}`, "root", "etc");
  const file = join(root, "resolv.conf");
  return parseNameServers(readSmall(file));
}

/** Loopback addresses, and all of IPv6, whose source address the kernel would choose otherwise. */
export function parseNameServers(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const address = /^\s*nameserver\s+([0-9A-Fa-f.:]+)\s*$/.exec(line)?.[1];
    if (address === undefined || address === "::1" || address === "127.0.0.1") return [];
    return address.includes(":") || address.startsWith("127.") ? [address] : [];
  });
}

function readSmall(path: string): string {
  try {
    const stat = statSync(path);
    return stat.isFile() && stat.size <= MOST_RESOLV_CONF ? readFileSync(path, "latin1") : "";
  } catch {
    return "";
  }
}
