/** A whole internet for one test: the gate and its clients in one network namespace, every other address in another. */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Canary } from "./canary.ts";
import { createCanary } from "./canary.ts";
import type { DnsServer } from "./dns-server.ts";
import { createDnsServer } from "./dns-server.ts";
import type { Namespace } from "./namespace.ts";
import { createNamespace } from "./namespace.ts";
import type { Authority } from "./pki.ts";
import { createAuthority } from "./pki.ts";

/** The gate's own addresses. Public ones, so that refusing them is the work of the own-address rule alone. */
export const GATE_V4 = "11.0.0.1";
export const GATE_V6 = "2a0f:ffff::1";
/** Where the DNS server answers. */
export const DNS_V4 = "11.0.0.53";
/** An origin that counts as globally reachable. Every other IPv4 address works just as well. */
export const PUBLIC_V4 = "11.0.0.10";
/** The IPv6 addresses that origins may listen on. */
export const PUBLIC_V6 = ["2a0f:ffff::10", "2a0f:ffff::11"] as const;

export interface Internet {
  /** The gate and its clients live here; it has nothing but a default route into `net`. */
  readonly gate: Namespace;
  /** Every address but the gate's is local here: whatever the gate dials, it reaches this namespace. */
  readonly net: Namespace;
  readonly dns: DnsServer;
  /** The root that the gate is told to trust (`upstream.ca_file`). */
  readonly authority: Authority;
  readonly canary: Canary;
  /** A directory that goes away with the internet. */
  readonly directory: string;
  /** Runs at `close`, last one first. */
  onClose(task: () => unknown): void;
  close(): Promise<void>;
}

export interface InternetOptions {
  /** Default: whether this process is not root. */
  readonly rootless?: boolean;
}

const GATE_MAC = "02:00:00:00:00:01";
const NET_MAC = "02:00:00:00:00:02";
const ROUTER_V4 = "11.0.0.254";
const ROUTER_V6 = "2a0f:ffff::fe";

/** Two namespaces joined by a veth pair. Nothing of it outlives this process; several may exist at once. */
export async function createInternet(options: InternetOptions = {}): Promise<Internet> {
  const rootless = options.rootless ?? process.getuid?.() !== 0;
  const gate = await createNamespace({ rootless });
  const net = await createNamespace({ rootless, beside: gate });
  await configure(gate, gateLink(net.pid));
  await configure(net, netLink());
  await configure(net, NET_V6_RULES, "-6");
  const directory = await mkdtemp(join(tmpdir(), "sallyport-path-"));
  // A test that failed in its preparation never comes to `close`.
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const dns = await createDnsServer(net, DNS_V4);
  const tasks: (() => unknown)[] = [];
  return {
    gate,
    net,
    dns,
    authority: createAuthority("Throw-away root"),
    canary: createCanary(),
    directory,
    onClose(task) {
      tasks.push(task);
    },
    async close() {
      const errors: unknown[] = [];
      for (const task of tasks.reverse()) {
        try {
          await task();
        } catch (error) {
          errors.push(error);
        }
      }
      dns.close();
      gate.close();
      net.close();
      await rm(directory, { recursive: true, force: true });
      if (errors.length > 0) throw errors[0];
    },
  };
}

/** Neighbours are permanent and link-local addresses absent, so that an idle link carries no packet at all. */
function gateLink(netPid: number): readonly string[] {
  return [
    "link set lo up",
    `link add up0 address ${GATE_MAC} type veth peer name dn0 address ${NET_MAC} netns ${netPid}`,
    "link set up0 addrgenmode none",
    "link set up0 up",
    `addr add ${GATE_V4}/32 dev up0`,
    `addr add ${GATE_V6}/128 dev up0 nodad`,
    `neigh add ${ROUTER_V4} lladdr ${NET_MAC} dev up0 nud permanent`,
    `neigh add ${ROUTER_V6} lladdr ${NET_MAC} dev up0 nud permanent`,
    `route add default via ${ROUTER_V4} dev up0 onlink src ${GATE_V4}`,
    `route add ::/0 via ${ROUTER_V6} dev up0 onlink src ${GATE_V6}`,
  ];
}

/** The `local` table is asked after a rule for the gate's own addresses, so that it can hold all the others. */
function netLink(): readonly string[] {
  return [
    "link set lo up",
    "link set dn0 addrgenmode none",
    "link set dn0 up",
    ...PUBLIC_V6.map((address) => `addr add ${address}/128 dev lo nodad`),
    `neigh add ${GATE_V4} lladdr ${GATE_MAC} dev dn0 nud permanent`,
    `neigh add ${GATE_V6} lladdr ${GATE_MAC} dev dn0 nud permanent`,
    `route add ${GATE_V4}/32 dev dn0`,
    `route add ${GATE_V6}/128 dev dn0`,
    `rule add pref 10 to ${GATE_V4} lookup main`,
    "rule add pref 100 lookup local",
    "rule del pref 0",
    "route add local default dev lo",
  ];
}

const NET_V6_RULES = [
  `rule add pref 10 to ${GATE_V6} lookup main`,
  "rule add pref 100 lookup local",
  "rule del pref 0",
  "route add local ::/0 dev lo",
];

async function configure(namespace: Namespace, lines: readonly string[], family?: "-6"): Promise<void> {
  const command = ["ip", ...(family === undefined ? [] : [family]), "-batch", "-"];
  const child = namespace.spawn(command, { stdio: ["pipe", "inherit", "inherit"] });
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(`${lines.join("\n")}\n`);
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`ip ended with ${code}`);
}
