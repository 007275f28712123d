/** Namespaces whose default route is the gate's: each on a link of its own, or several on one bridge. */
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Namespace } from "./namespace.ts";
import { createNamespace } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";

export interface Box {
  readonly namespace: Namespace;
  /** Runs a program with a resolv.conf of its own, which names a server that does not exist. */
  run(command: readonly string[], stdin?: string): Promise<Ran>;
  close(): void;
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface BoxOptions {
  /** Of the gate's side. With `bridge` it is a port of that; else it has the addresses of `gateOf`. */
  readonly link: string;
  readonly bridge?: string;
  /** Its network: `10.NET.0.0/24` and `fdNET::/64`; the gate is number 1. */
  readonly net: number;
  /** Its number there. */
  readonly host: number;
  readonly mac: string;
}

const ROOTLESS = process.getuid?.() !== 0;
/** Nobody answers there: what does answer is the gate. */
const NAME_SERVER = "9.9.9.9";

export function boxAddress(net: number, host: number): { readonly v4: string; readonly v6: string } {
  return { v4: `10.${net}.0.${host}`, v6: `fd${net}::${host}` };
}

/** The gate's host forwards, as one with containers does: what does not leave was kept from it. */
export async function forward(internet: Internet): Promise<void> {
  await shell(internet.gate, [
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
  ]);
}

export async function createBridge(internet: Internet, name: string, net: number): Promise<void> {
  await shell(internet.gate, [
    `ip link add ${name} address 02:00:00:00:99:01 type bridge`,
    `ip link set ${name} up`,
    ...gateAddresses(name, net),
  ]);
}

export async function createBox(internet: Internet, options: BoxOptions): Promise<Box> {
  const { link, bridge, net, host, mac } = options;
  const namespace = await createNamespace({ rootless: ROOTLESS, beside: internet.gate });
  await shell(internet.gate, [
    `ip link add ${link} type veth peer name e0 address ${mac} netns ${namespace.pid}`,
    ...(bridge === undefined ? [] : [`ip link set ${link} master ${bridge}`]),
    `ip link set ${link} up`,
    ...(bridge === undefined ? gateAddresses(link, net) : []),
  ]);
  const own = boxAddress(net, host);
  const gate = boxAddress(net, 1);
  await shell(namespace, [
    "ip link set lo up",
    "ip link set e0 up",
    `ip addr add ${own.v4}/24 dev e0`,
    `ip addr add ${own.v6}/64 dev e0 nodad`,
    `ip route add default via ${gate.v4}`,
    `ip -6 route add default via ${gate.v6}`,
  ]);
  const resolv = join(internet.directory, `resolv-${link}.conf`);
  if (!existsSync(resolv)) writeFileSync(resolv, `nameserver ${NAME_SERVER}\noptions timeout:2 attempts:1\n`);
  internet.onClose(() => namespace.close());
  return {
    namespace,
    run: (command, stdin) => run(namespace, [...inOwnMounts(resolv), ...command], stdin),
    close: () => namespace.close(),
  };
}

/** Ends with what the program printed. */
export async function run(namespace: Namespace, command: readonly string[], stdin = ""): Promise<Ran> {
  const child = namespace.spawn(command, { stdio: ["pipe", "pipe", "pipe"] });
  const said = { stdout: "", stderr: "" };
  child.stdout?.on("data", (bytes: Buffer) => {
    said.stdout += bytes.toString("utf8");
  });
  child.stderr?.on("data", (bytes: Buffer) => {
    said.stderr += bytes.toString("utf8");
  });
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(stdin);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...said };
}

export async function shell(namespace: Namespace, lines: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(namespace, ["sh", "-ec", lines.join("\n")]);
  if (code !== 0) throw new Error(`sh ended with ${code}: ${stderr}`);
  return stdout;
}

function gateAddresses(link: string, net: number): readonly string[] {
  const { v4, v6 } = boxAddress(net, 1);
  return [`ip addr add ${v4}/24 dev ${link}`, `ip addr add ${v6}/64 dev ${link} nodad`];
}

function inOwnMounts(resolv: string): readonly string[] {
  const script = 'mount --bind "$1" /etc/resolv.conf; shift; exec "$@"';
  return ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", resolv];
}
