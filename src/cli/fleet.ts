/** The running gate as `serve` handles it: one process, or several workers that take connections together. */
import cluster, { type Worker } from "node:cluster";
import { randomBytes } from "node:crypto";
import { listen } from "../accept/listener.ts";
import { createGate, type Gate, type GateState } from "../app.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { openCa } from "../pki/ca.ts";
import type { MetricsPart } from "../record/metrics.ts";
import { type JailEvents, Jails, placesOf, type Share } from "./jails.ts";
import { VERSION } from "./version.ts";

export interface Fleet {
  /** Rejects with `E_CONFIG` where the listener's address cannot be had. */
  start(): Promise<void>;
  apply(config: Config): Promise<void>;
  metrics(): Promise<readonly MetricsPart[]>;
  state(): GateState;
  reopenRecords(): void;
  drain(): Promise<void>;
}

/** What a supervisor tells a worker. */
export type Order =
  | {
      readonly kind: "start";
      readonly text: string;
      readonly file: string;
      readonly generation: number;
      readonly ticketSecret: string;
      readonly share: Share;
    }
  | {
      readonly kind: "apply";
      readonly id: number;
      readonly text: string;
      readonly file: string;
      readonly generation: number;
    }
  | { readonly kind: "metrics"; readonly id: number }
  | { readonly kind: "reopen" }
  | { readonly kind: "drain" };

/** What a worker tells its supervisor. */
export type Report =
  | { readonly kind: "listening" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "done"; readonly id: number; readonly problem: string | undefined }
  | { readonly kind: "metrics"; readonly id: number; readonly part: MetricsPart }
  | { readonly kind: "state"; readonly state: GateState };

export interface FleetOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onWorkerDeath: (detail: {
    pid: number | undefined;
    code: number | null;
    signal: string | null;
  }) => void;
  readonly jailEvents: JailEvents;
}

/** All that one process does of a config. */
const WHOLE: Share = { index: 0, count: 1 };

export function createLocalFleet({ config, env, jailEvents }: FleetOptions): Fleet {
  const gate = openGate(config, env, randomBytes(32));
  const jails = new Jails(gate, config, jailEvents);
  return {
    start: async () => {
      await startListening(gate, config, WHOLE);
      await jails.apply(config, placesOf(config, WHOLE));
    },
    apply: async (next) => {
      gate.apply(next);
      // Entering a namespace takes a while, and what goes wrong there is no fault of the config.
      void jails.apply(next, placesOf(next, WHOLE));
    },
    metrics: async () => [await gate.metrics()],
    state: () => gate.state(),
    reopenRecords: () => gate.reopenRecords(),
    drain: () => {
      jails.close();
      return gate.drain();
    },
  };
}

export function openGate(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  ticketSecret: Uint8Array,
): Gate {
  const session = `${Date.now().toString(36)}-${process.pid.toString(36)}-${randomBytes(3).toString("hex")}`;
  return createGate({ config, ca: openCa(config.caDir), ticketSecret, env, version: VERSION, session });
}

export async function startListening(gate: Gate, { listen: doors }: Config, share: Share): Promise<void> {
  if (doors.proxy !== undefined) await listen(gate.listener, doors.proxy);
  // One process alone: it knows which names the addresses stand for that its DNS gave out.
  if (doors.gateway !== undefined && share.index === 0) await gate.openGateway(doors.gateway);
}

/** A worker that dies this soon after its start, this often in a row, will not live: give up. */
const SHORT_LIFE_MS = 2_000;
const SHORT_LIVES = 5;
/** For a worker's answer to an order; one that hangs must not hang the rest. */
const ANSWER_MS = 5_000;

export function createWorkerFleet(options: FleetOptions, count: number): Fleet {
  return new WorkerFleet(options, count);
}

class WorkerFleet implements Fleet {
  readonly #options: FleetOptions;
  readonly #count: number;
  readonly #ticketSecret = randomBytes(32).toString("base64");
  readonly #states = new Map<number, GateState>();
  readonly #indexes = new Map<number, number>();
  readonly #waiting = new Map<number, (report: Report | undefined) => void>();
  #config: Config;
  #orders = 0;
  #shortLives = 0;
  #draining = false;

  constructor(options: FleetOptions, count: number) {
    this.#options = options;
    this.#count = count;
    this.#config = options.config;
  }

  async start(): Promise<void> {
    // Made here once, so that the workers find one authority and do not race for it.
    openCa(this.#config.caDir);
    // The kernel shares connections out: whoever is idle accepts.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.on("exit", (worker, code, signal) => this.#onExit(worker, code, signal));
    await Promise.all(Array.from({ length: this.#count }, (_, index) => this.#fork(index)));
  }

  async apply(config: Config): Promise<void> {
    this.#config = config;
    const { file, text, policy } = config;
    const reports = await this.#askAll((id) => ({
      kind: "apply",
      id,
      text,
      file,
      generation: policy.generation,
    }));
    const failed = reports.find((report) => report?.kind !== "done" || report.problem !== undefined);
    if (failed?.kind === "done")
      throw new Failure("E_CONFIG", "operator", failed.problem ?? "A worker failed");
    if (reports.includes(undefined))
      throw new Failure("E_INTERNAL", "gate", "A worker did not answer in time");
  }

  async metrics(): Promise<readonly MetricsPart[]> {
    const reports = await this.#askAll((id) => ({ kind: "metrics", id }));
    return reports.flatMap((report) => (report?.kind === "metrics" ? [report.part] : []));
  }

  state(): GateState {
    const states = [...this.#states.values()];
    return {
      secretsUnavailable: [...new Set(states.flatMap(({ secretsUnavailable }) => secretsUnavailable))],
      recordsDropped: states.reduce((sum, { recordsDropped }) => sum + recordsDropped, 0),
    };
  }

  reopenRecords(): void {
    for (const worker of workers()) send(worker, { kind: "reopen" });
  }

  async drain(): Promise<void> {
    this.#draining = true;
    const alive = workers();
    const ended = alive.map((worker) => new Promise((resolve) => worker.once("exit", resolve)));
    for (const worker of alive) send(worker, { kind: "drain" });
    await Promise.all(ended);
  }

  /** Resolves once the worker listens. `index`: its place among the workers, which its successor takes. */
  #fork(index: number): Promise<void> {
    const worker = cluster.fork();
    this.#indexes.set(worker.id, index);
    const born = performance.now();
    return new Promise((resolve, reject) => {
      worker.on("message", (report: Report) => {
        if (report.kind === "listening") resolve();
        else if (report.kind === "refused") reject(new Failure("E_CONFIG", "operator", report.message));
        else this.#onReport(worker, report);
      });
      worker.once("exit", () => {
        this.#shortLives = performance.now() - born < SHORT_LIFE_MS ? this.#shortLives + 1 : 0;
        reject(new Failure("E_INTERNAL", "gate", "A worker died while it was starting"));
      });
      worker.once("online", () => {
        const { file, text, policy } = this.#config;
        send(worker, {
          kind: "start",
          text,
          file,
          generation: policy.generation,
          ticketSecret: this.#ticketSecret,
          share: { index, count: this.#count },
        });
      });
    });
  }

  #onReport(worker: Worker, report: Report): void {
    if (report.kind === "state") this.#states.set(worker.id, report.state);
    else if (report.kind === "done" || report.kind === "metrics") this.#waiting.get(report.id)?.(report);
  }

  #onExit(worker: Worker, code: number | null, signal: string | null): void {
    const index = this.#indexes.get(worker.id) ?? 0;
    this.#states.delete(worker.id);
    this.#indexes.delete(worker.id);
    if (this.#draining) return;
    this.#options.onWorkerDeath({ pid: worker.process.pid, code, signal });
    if (this.#shortLives >= SHORT_LIVES) {
      process.exitCode = 1;
      process.kill(process.pid, "SIGTERM");
    } else void this.#fork(index).catch(() => undefined);
  }

  #askAll(order: (id: number) => Order): Promise<readonly (Report | undefined)[]> {
    return Promise.all(workers().map((worker) => this.#ask(worker, order)));
  }

  #ask(worker: Worker, order: (id: number) => Order): Promise<Report | undefined> {
    this.#orders += 1;
    const id = this.#orders;
    return new Promise((resolve) => {
      const timer = setTimeout(() => answer(undefined), ANSWER_MS);
      const answer = (report: Report | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(report);
      };
      this.#waiting.set(id, answer);
      send(worker, order(id));
    });
  }
}

function workers(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

/** A worker that is gone hears nothing, and its exit is heard elsewhere. */
function send(worker: Worker, order: Order): void {
  if (worker.isConnected()) worker.send(order, () => {});
}
