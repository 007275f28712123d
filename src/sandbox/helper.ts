/** Runs inside a namespace for a moment: makes every address local, opens listeners there, hands them to the gate, ends. */
import { spawnSync } from "node:child_process";
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname } from "node:path";
import { parseWaysOut } from "./interfaces.ts";
import type { HelperOrder, HelperReport } from "./protocol.ts";
import { toolPath } from "./tools.ts";

type Open = Extract<HelperOrder, { kind: "open" }>;

const DNS_PORT = 53;

process.on("message", (order: HelperOrder) => {
  if (order.kind === "done") process.exit(0);
  open(order).catch((error: unknown) => {
    report({ kind: "failed", message: error instanceof Error ? error.message : "Something broke" });
  });
});
process.on("disconnect", () => process.exit(1));

async function open(order: Open): Promise<void> {
  for (const { path, base64 } of order.files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, Buffer.from(base64, "base64"), { mode: 0o444 });
  }
  if (order.exclusive) {
    const interfaces = parseWaysOut(ip("-o", "link", "show"));
    if (interfaces.length > 0) {
      report({ kind: "ways-out", interfaces });
      return;
    }
  }
  const v6 = order.first ? configure(order.nameServers) : hasV6();
  for (const port of order.ports) await listen(port, v6);
  if (order.first)
    for (const family of v6 ? (["udp4", "udp6"] as const) : (["udp4"] as const)) await bind(family);
  report({ kind: "opened", v6 });
}

/** False where the kernel has no IPv6: then there is none to leave by either. */
function configure(nameServers: readonly string[]): boolean {
  batch([
    "link set lo up",
    "route replace local default dev lo",
    ...nameServers
      .filter((address) => !address.includes(":"))
      .map((address) => `addr replace ${address}/32 dev lo`),
  ]);
  if (!hasV6()) return false;
  batch(
    [
      "route replace local ::/0 dev lo",
      ...nameServers
        .filter((address) => address.includes(":"))
        .map((address) => `addr replace ${address}/128 dev lo nodad`),
    ],
    "-6",
  );
  return true;
}

function hasV6(): boolean {
  try {
    return readFileSync("/proc/self/net/if_inet6", "latin1") !== "";
  } catch {
    return false;
  }
}

function batch(lines: readonly string[], ...options: readonly string[]): void {
  ipWith(`${lines.join("\n")}\n`, ...options, "-batch", "-");
}

function ip(...args: readonly string[]): string {
  return ipWith("", ...args);
}

function ipWith(input: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(toolPath("ip"), args, { input, encoding: "latin1" });
  if (status !== 0) throw new Error(`ip: ${stderr.trim().split("\n")[0] ?? ""}`);
  return stdout;
}

/** `::` takes both families. */
function listen(port: number, v6: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EADDRINUSE") {
        reject(new Error(`Port ${port} cannot be listened on (${error.code})`));
        return;
      }
      report({ kind: "taken", port });
      resolve();
    });
    server.listen({ host: v6 ? "::" : "0.0.0.0", port, backlog: 4_096 }, () => {
      report({ kind: "tcp", port }, server, resolve);
    });
  });
}

function bind(family: "udp4" | "udp6"): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Datagrams = createSocket({ type: family, ipv6Only: family === "udp6" });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EADDRINUSE") {
        reject(new Error(`UDP port ${DNS_PORT} cannot be listened on (${error.code})`));
        return;
      }
      report({ kind: "taken", port: DNS_PORT });
      resolve();
    });
    socket.bind(DNS_PORT, family === "udp6" ? "::" : "0.0.0.0", () => {
      report({ kind: "udp" }, socket, resolve);
    });
  });
}

function report(message: HelperReport, handle?: Server | Datagrams, sent?: () => void): void {
  process.send?.(message, handle, { keepOpen: true }, () => sent?.());
}
