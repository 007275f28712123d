/** `npm run bench -- jail`: what a jail adds to the explicit door, how fast jails start, and what memory each takes. */
import { once } from "node:events";
import { cpus, release } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { SECRET, startGate } from "../test/support/gate.ts";
import { endOf, type JailSetup, setUpJail, spawnJail } from "../test/support/jail.ts";
import { insideOf, MAKERS } from "../test/support/makers.ts";
import { createOrigin } from "../test/support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../test/support/private-internet.ts";
import type { Latency } from "./jail-client.ts";
import { cpuSeconds, memoryBytes } from "./process-tree.ts";
import { median } from "./report.ts";

const ROUNDS = 7;
const CLIENT = fileURLToPath(new URL("./jail-client.ts", import.meta.url));
const NETWORK = { allowlist: [{ domain: "api.test", transform: { Authorization: `Bearer ${SECRET}` } }] };
const SEQUENTIAL = 10;
const AT_ONCE = 8;
const SHARED = 16;
const MIB = 2 ** 20;

process.exitCode = await main();

async function main(): Promise<number> {
  if (process.getuid?.() !== 0) {
    process.stderr.write("The bench needs root: it makes network namespaces\n");
    return 2;
  }
  const internet = await createInternet();
  try {
    internet.dns.set("api.test", { A: [PUBLIC_V4] });
    await createOrigin(internet, { tls: ["api.test"], bound: true });
    const setup = setUpJail(internet, { network: NETWORK, records: { file: "/dev/null" } });
    const lines = [
      `${cpus()[0]?.model}, ${cpus().length} cores, Linux ${release()}, Node.js ${process.versions.node}`,
      ...(await latency(internet, setup)),
      ...(await starts(internet, setup)),
      ...(await memory(internet, setup)),
    ];
    process.stdout.write(`${lines.join("\n")}\n`);
    return 0;
  } finally {
    await internet.close();
  }
}

/** One gate, one client program, both doors in turn: what the machine does beside us meets both alike. */
async function latency(internet: Internet, setup: JailSetup): Promise<readonly string[]> {
  const { pid } = await MAKERS.unshare(internet, { ...setup, prefix: [] });
  const gate = await startGate(internet, {
    records: { file: "/dev/null" },
    network: NETWORK,
    sandboxes: [
      { id: "box", netns: `/proc/${pid}/ns/net`, network: NETWORK },
      { id: "told", source: ["127.0.0.1"], network: NETWORK },
    ],
  });
  const runs: Record<"explicit" | "jail", Latency[]> = { explicit: [], jail: [] };
  const ask = (door: string): readonly string[] => [process.execPath, CLIENT, door, gate.caPem];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const told = internet.gate.spawn(ask("explicit"), { stdio: ["ignore", "pipe", "inherit"] });
    const explicit = JSON.parse((await endOf(internet, told)).stdout) as Latency;
    const jail = JSON.parse(await insideOf(internet, pid, ask("jail"))) as Latency;
    // The first round warms up.
    if (round > 0) {
      runs.explicit.push(explicit);
      runs.jail.push(jail);
    }
  }
  await gate.stop();
  const kinds = ["fresh", "kept"] as const;
  return kinds.map((kind) => {
    const [there, here] = [runs.jail, runs.explicit].map((all) => median(all.map((one) => one[kind])));
    const ratios = runs.jail.map((one, at) => one[kind] / (runs.explicit[at]?.[kind] ?? Number.NaN));
    const what = kind === "fresh" ? "a connection for each request" : "keep-alive";
    return `latency, ${what}: jail ${there?.toFixed(2)} ms, explicit ${here?.toFixed(2)} ms, ratio ${median(ratios).toFixed(2)} (${ROUNDS} pairs, from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
  });
}

async function starts(internet: Internet, setup: JailSetup): Promise<readonly string[]> {
  const once = async (): Promise<void> => {
    const { code, stderr } = await endOf(internet, spawnJail(internet, setup, ["true"]));
    if (code !== 0) throw new Error(`The jail ended with ${code}: ${stderr}`);
  };
  await once();
  const cpuBefore = cpuSeconds(process.pid);
  const alone: number[] = [];
  for (let at = 0; at < SEQUENTIAL; at += 1) alone.push(await timed(once));
  const cpu = (cpuSeconds(process.pid) - cpuBefore) / SEQUENTIAL;
  const together = await timed(() => Promise.all(Array.from({ length: AT_ONCE }, once)));
  return [
    `run -- true: ${median(alone).toFixed(0)} ms (median of ${SEQUENTIAL}, least ${Math.min(...alone).toFixed(0)}), ${cpu.toFixed(2)} CPU s; ${AT_ONCE} at once: ${((AT_ONCE / together) * 1_000).toFixed(1)} jails/s`,
  ];
}

async function memory(internet: Internet, setup: JailSetup): Promise<readonly string[]> {
  const jails = Array.from({ length: AT_ONCE }, () =>
    spawnJail(internet, setup, ["sh", "-c", "echo ready; exec sleep 600"]),
  );
  for (const { stdout } of jails) if (stdout !== null) await once(createInterface({ input: stdout }), "line");
  const own = jails.map(({ pid = 0 }) => memoryBytes(pid) / MIB);
  for (const jail of jails) jail.kill("SIGTERM");
  await Promise.all(jails.map((jail) => once(jail, "exit")));
  const few = await served(internet, setup, 1);
  const many = await served(internet, setup, SHARED);
  const each = (many - few) / (SHARED - 1);
  return [
    `memory of run: ${median(own).toFixed(0)} MiB a jail, all its processes, where ${AT_ONCE} run (PSS)`,
    `memory of serve: ${few.toFixed(0)} MiB with one namespace, ${many.toFixed(0)} MiB with ${SHARED}: ${each.toFixed(1)} MiB for each more`,
  ];
}

/** MiB of one `serve` that is attached to so many namespaces. */
async function served(internet: Internet, setup: JailSetup, count: number): Promise<number> {
  const pids: number[] = [];
  while (pids.length < count) {
    pids.push((await MAKERS.unshare(internet, { ...setup, prefix: [] })).pid);
  }
  const sandboxes = pids.map((pid, at) => ({
    id: `box-${at}`,
    netns: `/proc/${pid}/ns/net`,
    network: NETWORK,
  }));
  const gate = await startGate(internet, { records: { file: "/dev/null" }, sandboxes });
  for (const pid of pids) {
    const answer = await insideOf(internet, pid, ["curl", "-s", "--cacert", gate.caPem, "https://api.test/"]);
    if (answer !== "ok") throw new Error(`A sandbox was answered ${answer}`);
  }
  const bytes = memoryBytes(gate.pid);
  await gate.stop();
  for (const pid of pids) process.kill(pid, "SIGKILL");
  return bytes / MIB;
}

async function timed(task: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await task();
  return performance.now() - start;
}
