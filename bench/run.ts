/** `npm run bench`: CPU per request of Sallyport beside its peer's, in one run. See docs/performance.md. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, release } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createInternet, type Internet } from "../test/support/private-internet.ts";
import type { Contender } from "./contender.ts";
import type { LoadOptions, LoadResult } from "./load.ts";
import { ask, type Plan } from "./options.ts";
import { startOrigin } from "./origin.ts";
import { hottest } from "./profile.ts";
import { startRelay } from "./relay.ts";
import { type Measurement, ratios, render, summaryOf } from "./report.ts";
import { startSallyport } from "./sallyport.ts";
import { startSquid } from "./squid.ts";
import type { Workload } from "./workloads.ts";

/** The contender has one core for itself; clients and origin share another. */
const CONTENDER_CORE = 0;
const LOAD_CORE = 1;
const LOAD = fileURLToPath(new URL("./load.ts", import.meta.url));

interface Load {
  /** Keeps the clients busy for so long, after a moment to settle. */
  window(ms: number): Promise<LoadResult>;
  end(): Promise<void>;
}

interface Running {
  readonly name: string;
  readonly contender: Contender;
  readonly load: Load;
}

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const asked = ask(args);
  if (asked.kind === "text") {
    process.stdout.write(asked.text);
    return asked.status;
  }
  const { plan } = asked;
  const internet = await createInternet();
  try {
    writeFileSync(rootFile(plan), internet.authority.certPem);
    await startOrigin(internet, LOAD_CORE);
    const measurements: Measurement[] = [];
    for (const workload of plan.workloads) measurements.push(...(await measure(internet, plan, workload)));
    return report(plan, measurements);
  } finally {
    await internet.close();
  }
}

/** All contenders run at once and are asked in turn, A B A B: what the machine does beside us meets both alike. */
async function measure(internet: Internet, plan: Plan, workload: Workload): Promise<readonly Measurement[]> {
  const running: Running[] = [];
  const measurements: Measurement[] = [];
  try {
    for (const name of contendersOf(plan, workload)) {
      const contender = await start(internet, plan, name);
      running.push({ name, contender, load: startLoad(internet, loadOf(plan, workload, contender)) });
    }
    for (const { load } of running) await load.window(plan.warmUpMs);
    for (let round = 1; round <= plan.rounds; round += 1) {
      for (const { name, load } of running) {
        const result = await load.window(plan.measureMs);
        measurements.push({ workload: workload.name, contender: name, round, result });
        process.stderr.write(progress(`${workload.name} ${round} ${name}`, result));
      }
    }
    for (const { name, contender } of running) {
      const requests = measurements
        .filter((one) => one.contender === name)
        .map(({ result }) => result.requests);
      await contender.audit(
        workload,
        requests.reduce((sum, each) => sum + each, 0),
      );
    }
    return measurements;
  } finally {
    for (const { contender, load } of running) {
      await load.end();
      await contender.stop();
    }
  }
}

/** Sallyport and the workload's peer, or the one of them that was asked for. */
function contendersOf({ only }: Plan, { peer }: Workload): readonly string[] {
  return ["sallyport", peer].filter((name) => only === undefined || name === only);
}

function start(internet: Internet, { profile, directory }: Plan, name: string): Promise<Contender> {
  if (name === "squid") return startSquid(internet, CONTENDER_CORE);
  if (name === "relay") return startRelay(internet, CONTENDER_CORE);
  const profiler = ["--cpu-prof", `--cpu-prof-dir=${directory}`, "--cpu-prof-interval", "500"];
  return startSallyport(internet, { core: CONTENDER_CORE, nodeArgs: profile ? profiler : [] });
}

function loadOf(plan: Plan, workload: Workload, contender: Contender): LoadOptions {
  const { host, path, connections, fresh, injected, streams } = workload;
  const { pid, port } = contender;
  // Through a tunnel the clients see the origin's own certificate.
  const caFile = injected ? contender.caFile : rootFile(plan);
  return { host, path, connections, fresh, streams, pid, port, caFile };
}

function rootFile({ directory }: Plan): string {
  return join(directory, "root.pem");
}

function startLoad(internet: Internet, options: LoadOptions): Load {
  const command = ["taskset", "-c", String(LOAD_CORE), process.execPath, LOAD, JSON.stringify(options)];
  const child = internet.gate.spawn(command, { stdio: ["pipe", "pipe", "inherit"] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("The load generator has no pipes");
  const ended = once(child, "exit");
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    async window(ms) {
      stdin.write(`${ms}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error("The load generator ended");
      return JSON.parse(value);
    },
    async end() {
      stdin.end("0\n");
      await ended;
    },
  };
}

function progress(what: string, { requests, cpuSeconds, errors, firstError }: LoadResult): string {
  const trouble = errors === 0 ? "" : `, ${errors} errors, the first: ${firstError}`;
  return `${what}: ${requests} requests, ${cpuSeconds.toFixed(2)} CPU s${trouble}\n`;
}

/** 1 where anything but a 200 came back; over the bound is a figure, not an error. */
function report(plan: Plan, measurements: readonly Measurement[]): number {
  const cores = availableParallelism();
  const machine = `${cpus()[0]?.model}, ${cores} cores, Linux ${release()}, Node.js ${process.versions.node}`;
  const sections = plan.workloads.map((workload) => {
    const own = measurements.filter((one) => one.workload === workload.name);
    return {
      workload,
      own,
      ratios: ratios(own),
      summaries: contendersOf(plan, workload).map((name) => summaryOf(name, own)),
    };
  });
  const tables = sections.map(({ workload, own }) => render(workload, own));
  process.stdout.write(`\n${[machine, ...tables].join("\n\n")}\n\n`);
  if (plan.profile) process.stdout.write(`${hottest(plan.directory).join("\n")}\n\n`);
  const file = join(plan.directory, "results.json");
  writeFileSync(file, `${JSON.stringify({ machine, sections }, undefined, 2)}\n`);
  process.stdout.write(`All figures: ${file}\n`);
  const errors = measurements.reduce((sum, { result }) => sum + result.errors, 0);
  if (errors > 0) process.stdout.write(`${errors} errors: these figures prove nothing\n`);
  return errors > 0 ? 1 : 0;
}
