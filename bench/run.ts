/** `npm run bench`: CPU per request of Sallyport beside Squid's, in one run. See docs/performance.md. */
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createInternet, type Internet } from "../test/support/private-internet.ts";
import type { Contender } from "./contender.ts";
import type { LoadOptions, LoadResult } from "./load.ts";
import { startOrigin } from "./origin.ts";
import { hottest } from "./profile.ts";
import { type Measurement, ratios, render, summaryOf } from "./report.ts";
import { startSallyport } from "./sallyport.ts";
import { startSquid } from "./squid.ts";
import { WORKLOADS, type Workload } from "./workloads.ts";

const HELP = `usage: npm run bench -- [options]

  --quick           one short round of the first workload
  --only NAME       sallyport or squid alone
  --workload NAMES  of ${WORKLOADS.map(({ name }) => name).join(", ")}; default all
  --rounds N        default 3
  --seconds N       of measurement in each round; default 6
  --warm-up N       seconds before it; default 3
  --profile         Sallyport alone under Node's CPU profiler; prints who spent the time

Needs root, two cores, nginx and squid (on Debian: nginx-light, squid-openssl).
`;

interface Plan {
  readonly contenders: readonly string[];
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly measureMs: number;
  readonly warmUpMs: number;
  /** Where results and profiles are put. */
  readonly directory: string;
  readonly profile: boolean;
}

/** The contender has one core for itself; clients and origin share another. */
const CONTENDER_CORE = 0;
const LOAD_CORE = 1;
const LOAD = fileURLToPath(new URL("./load.ts", import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const plan = planOf(args);
  if (typeof plan === "string") {
    process.stdout.write(plan);
    return plan === HELP ? 0 : 2;
  }
  const internet = await createInternet();
  try {
    await startOrigin(internet, LOAD_CORE);
    const measurements = await measureAll(internet, plan);
    return report(plan, measurements);
  } finally {
    await internet.close();
  }
}

/** A text instead of a plan is to be printed, and that is all. */
function planOf(args: readonly string[]): Plan | string {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: "boolean" },
      quick: { type: "boolean" },
      only: { type: "string" },
      workload: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      "warm-up": { type: "string" },
      profile: { type: "boolean" },
    },
  });
  if (values.help === true) return HELP;
  if (process.getuid?.() !== 0) return "The bench needs root: it makes network namespaces and starts Squid\n";
  if (availableParallelism() < 2) return "The bench needs two cores, one for the contender alone\n";
  const { quick = false, profile = false } = values;
  const only = profile ? "sallyport" : values.only;
  const names = (values.workload ?? (quick || profile ? "inspected" : "")).split(",");
  const workloads = WORKLOADS.filter(({ name }) => names[0] === "" || names.includes(name));
  if (workloads.length === 0) return `No such workload: ${values.workload}\n`;
  return {
    contenders: ["sallyport", "squid"].filter((name) => only === undefined || name === only),
    workloads,
    rounds: Number(values.rounds ?? (quick || profile ? 1 : 3)),
    measureMs: Number(values.seconds ?? (quick ? 3 : 6)) * 1000,
    warmUpMs: Number(values["warm-up"] ?? (quick ? 2 : 3)) * 1000,
    directory: mkdtempSync(join(tmpdir(), "sallyport-bench-")),
    profile,
  };
}

/** A B A B: what the machine does beside us meets both alike. */
async function measureAll(internet: Internet, plan: Plan): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  for (const workload of plan.workloads) {
    for (let round = 1; round <= plan.rounds; round += 1) {
      for (const contender of plan.contenders) {
        const result = await measure(internet, plan, workload, contender);
        measurements.push({ workload: workload.name, contender, round, result });
        const { requests, cpuSeconds, errors, firstError } = result;
        const why = firstError === undefined ? "" : ` (${firstError})`;
        process.stderr.write(
          `${workload.name} ${contender} ${round}: ${requests} requests, ${cpuSeconds} CPU s, ${errors} errors${why}\n`,
        );
      }
    }
  }
  return measurements;
}

async function measure(
  internet: Internet,
  plan: Plan,
  workload: Workload,
  name: string,
): Promise<LoadResult> {
  const contender = await start(internet, plan, name);
  try {
    const { host, path, connections, fresh, injected } = workload;
    const { pid, port } = contender;
    // Through a tunnel the clients see the origin's own certificate.
    const caFile = injected ? contender.caFile : join(plan.directory, "root.pem");
    writeFileSync(join(plan.directory, "root.pem"), internet.authority.certPem);
    const { warmUpMs, measureMs } = plan;
    const result = await load(internet, {
      host,
      path,
      connections,
      fresh,
      pid,
      port,
      caFile,
      warmUpMs,
      measureMs,
    });
    await contender.audit(workload, result);
    return result;
  } finally {
    await contender.stop();
  }
}

function start(internet: Internet, { profile, directory }: Plan, name: string): Promise<Contender> {
  if (name === "squid") return startSquid(internet, CONTENDER_CORE);
  const nodeArgs = profile
    ? ["--cpu-prof", `--cpu-prof-dir=${directory}`, "--cpu-prof-interval", "500"]
    : ([] as const);
  return startSallyport(internet, { core: CONTENDER_CORE, nodeArgs });
}

async function load(internet: Internet, options: LoadOptions): Promise<LoadResult> {
  const command = ["taskset", "-c", String(LOAD_CORE), process.execPath, LOAD, JSON.stringify(options)];
  const child = internet.gate.spawn(command, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`The load generator ended with ${code}`);
  return JSON.parse(output);
}

/** 1 where anything but a 200 came back; over the bound is a figure, not an error. */
function report(plan: Plan, measurements: readonly Measurement[]): number {
  const machine = `${cpus()[0]?.model ?? "?"}, ${availableParallelism()} cores, Linux ${release()}, Node.js ${process.versions.node}`;
  const sections = plan.workloads.map((workload) => {
    const own = measurements.filter((one) => one.workload === workload.name);
    return { workload, own };
  });
  const tables = sections.map(({ workload, own }) => render(workload, own));
  process.stdout.write(`${[machine, ...tables].join("\n\n")}\n\n`);
  if (plan.profile) process.stdout.write(`${hottest(plan.directory).join("\n")}\n\n`);
  const file = join(plan.directory, "results.json");
  const summaries = sections.map(({ workload, own }) => ({
    workload,
    ratios: ratios(own),
    summaries: plan.contenders.map((name) =>
      summaryOf(
        name,
        own.filter(({ contender }) => contender === name).map(({ result }) => result),
      ),
    ),
  }));
  writeFileSync(file, `${JSON.stringify({ machine, summaries, measurements }, undefined, 2)}\n`);
  process.stdout.write(`All figures: ${file}\n`);
  const errors = measurements.reduce((sum, { result }) => sum + result.errors, 0);
  if (errors > 0) process.stdout.write(`${errors} errors: these figures prove nothing\n`);
  return errors > 0 ? 1 : 0;
}
