/** `npm run bench -- scrub`: what the search of answers costs, on a long text through a rule that injects. */
import { cpus, release } from "node:os";
import { type Gate, SECRET, startGate } from "../test/support/gate.ts";
import { endOf } from "../test/support/jail.ts";
import { createOrigin, respond } from "../test/support/origin.ts";
import { createInternet, type Internet, PUBLIC_V4 } from "../test/support/private-internet.ts";
import { PROXY } from "../test/support/wire-client.ts";
import { cpuSeconds } from "./process-tree.ts";
import { median } from "./report.ts";

const ROUNDS = Number(process.argv[2] ?? 15);
const BYTES = 100_000_000;
const LINE = "A line of text as logs and listings have it, 0123456789 abcdef, with nothing in it\n";
const ON = "on.test";
const OFF = "off.test";

interface Cost {
  readonly cpu: number;
  readonly wall: number;
}

process.exitCode = await main();

async function main(): Promise<number> {
  const internet = await createInternet();
  try {
    for (const host of [ON, OFF]) internet.dns.set(host, { A: [PUBLIC_V4] });
    const text = Buffer.from(respond(LINE.repeat(Math.ceil(BYTES / LINE.length)).slice(0, BYTES)), "latin1");
    await createOrigin(internet, { tls: [ON, OFF], bound: true, answer: () => text });
    process.stdout.write(`${(await measure(internet)).join("\n")}\n`);
    return 0;
  } finally {
    await internet.close();
  }
}

/** One gate, one client program, both rules in turn: what the machine does beside us meets both alike. */
async function measure(internet: Internet): Promise<readonly string[]> {
  const transform = { Authorization: `Bearer ${SECRET}` };
  const allowlist = [
    { domain: ON, transform },
    { domain: OFF, transform, scrub: false },
  ];
  const gate = await startGate(internet, { records: { file: "/dev/null" }, network: { allowlist } });
  const [on, off]: [Cost[], Cost[]] = [[], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const pair = [await download(internet, gate, ON), await download(internet, gate, OFF)] as const;
    // The first round warms up.
    if (round === 0) continue;
    on.push(pair[0]);
    off.push(pair[1]);
  }
  await gate.stop();
  const lines = (["cpu", "wall"] as const).map((kind) => {
    const ratios = on.map((one, at) => one[kind] / (off[at]?.[kind] ?? Number.NaN));
    const [with_, without] = [on, off].map((all) => median(all.map((one) => one[kind])).toFixed(2));
    return `${kind} of 100 MB: searched ${with_} s, \`scrub: false\` ${without} s, ratio ${median(ratios).toFixed(2)} (${ROUNDS} pairs, from ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
  });
  return [
    `${cpus()[0]?.model}, ${cpus().length} cores, Linux ${release()}, Node.js ${process.versions.node}`,
    ...lines,
  ];
}

async function download(internet: Internet, gate: Gate, host: string): Promise<Cost> {
  const [started, before] = [performance.now(), cpuSeconds(gate.pid)];
  const proxy = `http://${PROXY.host}:${PROXY.port}`;
  const told = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}"];
  const command = [
    "curl",
    "-sS",
    "--http1.1",
    "--cacert",
    gate.caPem,
    "-x",
    proxy,
    ...told,
    `https://${host}/`,
  ];
  const child = internet.gate.spawn(command, { stdio: ["ignore", "pipe", "pipe"] });
  const { stdout, stderr } = await endOf(internet, child);
  if (stdout !== `200 ${BYTES}`) throw new Error(`The download ended with ${stdout}: ${stderr}`);
  return { cpu: cpuSeconds(gate.pid) - before, wall: (performance.now() - started) / 1_000 };
}
