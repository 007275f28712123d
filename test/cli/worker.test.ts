import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Order, Report } from "../../src/cli/fleet.ts";
import { folder, freeAddress } from "./program.ts";

const MODULE = new URL("../../src/cli/worker.ts", import.meta.url).href;
const children = new Set<ChildProcess>();
after(() => {
  for (const child of children) child.kill("SIGKILL");
});

test("runWorker: listens when it is told, and obeys what comes while it starts after that", async () => {
  const worker = newWorker();
  const { text, file } = await newConfig();
  tell(worker, startOrder(text, file));
  tell(worker, {
    kind: "apply",
    id: 1,
    text: text.replace("one.example", "two.example"),
    file,
    generation: 2,
  });
  tell(worker, { kind: "metrics", id: 2 });
  const reports = await reportsUntil(worker, ({ kind }) => kind === "metrics");
  assert.deepEqual(
    reports.map(({ kind }) => kind).filter((kind) => kind !== "state"),
    ["listening", "done", "metrics"],
  );
  const metrics = reports.findLast((report) => report.kind === "metrics");
  assert.ok(metrics !== undefined && metrics.part.length > 10);
  tell(worker, { kind: "reopen" });
  tell(worker, { kind: "drain" });
  assert.equal(await codeOf(worker), 0);
});

test("runWorker: a config that cannot be taken up leaves the one before it", async () => {
  const worker = newWorker();
  const { text, file } = await newConfig();
  tell(worker, startOrder(text, file));
  tell(worker, { kind: "apply", id: 1, text: "version: 1\nnetwork: 7\n", file, generation: 2 });
  const [report] = (await reportsUntil(worker, ({ kind }) => kind === "done")).slice(-1);
  assert.ok(report?.kind === "done" && report.problem !== undefined);
  tell(worker, { kind: "apply", id: 2, text, file, generation: 3 });
  const [next] = (await reportsUntil(worker, ({ kind }) => kind === "done")).slice(-1);
  assert.ok(next?.kind === "done" && next.problem === undefined);
});

test("runWorker: what keeps it from starting is reported before it ends with 1", async () => {
  const worker = newWorker();
  const { file } = await newConfig();
  tell(worker, startOrder("version: 1\nnetwork: 7\n", file));
  const reports = await reportsUntil(worker, ({ kind }) => kind === "refused");
  assert.match(JSON.stringify(reports.at(-1)), /network/);
  assert.equal(await codeOf(worker), 1);
});

test("runWorker: before it was started it answers at once, and a drain ends it", async () => {
  const worker = newWorker();
  tell(worker, { kind: "apply", id: 1, text: "", file: "/c.yaml", generation: 2 });
  tell(worker, { kind: "metrics", id: 2 });
  const reports = await reportsUntil(worker, ({ kind }) => kind === "metrics");
  assert.deepEqual(reports, [
    { kind: "done", id: 1 },
    { kind: "metrics", id: 2, part: [] },
  ]);
  tell(worker, { kind: "drain" });
  assert.equal(await codeOf(worker), 0);
});

test("runWorker: signals are the supervisor's, and it ends where that is gone", async () => {
  const worker = newWorker();
  tell(worker, { kind: "metrics", id: 1 });
  await reportsUntil(worker, ({ kind }) => kind === "metrics");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) worker.kill(signal);
  tell(worker, { kind: "metrics", id: 2 });
  await reportsUntil(worker, ({ kind }) => kind === "metrics");
  worker.disconnect();
  assert.equal(await codeOf(worker), 1);
});

function newWorker(): ChildProcess {
  const program = join(
    folder({ "worker.mjs": `import { runWorker } from ${JSON.stringify(MODULE)};\nawait runWorker({});\n` }),
    "worker.mjs",
  );
  const child = fork(program, {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

async function newConfig(): Promise<{ text: string; file: string }> {
  const text = `version: 1\nlisten: { proxy: "${await freeAddress()}" }\nca: { dir: ca }\nnetwork: { allowlist: [ { domain: one.example } ] }\n`;
  return { text, file: join(folder({ "c.yaml": text }), "c.yaml") };
}

function startOrder(text: string, file: string): Order {
  const ticketSecret = Buffer.alloc(32).toString("base64");
  return { kind: "start", text, file, generation: 1, ticketSecret, share: { index: 0, count: 2 } };
}

function tell(worker: ChildProcess, order: Order): void {
  worker.send(order);
}

/** All reports up to the first that fits. */
function reportsUntil(worker: ChildProcess, fits: (report: Report) => boolean): Promise<readonly Report[]> {
  const reports: Report[] = [];
  return new Promise((resolve) => {
    const hear = (message: unknown): void => {
      const report = message as Report;
      reports.push(report);
      if (!fits(report)) return;
      worker.off("message", hear);
      resolve(reports);
    };
    worker.on("message", hear);
  });
}

async function codeOf(worker: ChildProcess): Promise<number | null> {
  if (worker.exitCode !== null) return worker.exitCode;
  const [code] = (await once(worker, "exit")) as [number | null];
  return code;
}
