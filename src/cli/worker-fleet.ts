/** The supervisor of several workers that take connections together: it orders, replaces, and sums up. */
import cluster, { type Worker } from "node:cluster";
import { randomBytes } from "node:crypto";
import type { GateState } from "../gate.ts";
import { type ApprovalKey, holds, type PendingApproval, type Resolution } from "../hooks/approvals.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { openCa } from "../pki/ca.ts";
import type { MetricsPart } from "../record/metrics.ts";
import type { Fleet, FleetOptions, Order, Report } from "./fleet.ts";

/** A worker that dies this soon after it listened, or before, this often in a row, will not live: give up. */
const SHORT_LIFE_MS = 2_000;
const SHORT_LIVES = 5;
/** For a worker's answer to an order; one that hangs must not hang the rest. */
const ANSWER_MS = 5_000;
/** Beyond `drain_timeout`: for what a worker does after the last connection. */
const GRACE_MS = 5_000;

/** `gone`: it died, and its successor starts with what is in force. `late`: it may have heard, or will. */
type Answer = Report | "gone" | "late";

interface Waiting {
  readonly worker: number;
  readonly answer: (answer: Answer) => void;
}

/** What is known of one worker's life. */
interface Life {
  /** Its place among the workers, which its successor takes. */
  readonly index: number;
  listeningAt: number | undefined;
  problem: string | undefined;
}

export function createWorkerFleet(options: FleetOptions, count: number): Fleet {
  return new WorkerFleet(options, count);
}

class WorkerFleet implements Fleet {
  readonly #options: FleetOptions;
  readonly #count: number;
  readonly #ticketSecret = randomBytes(32).toString("base64");
  readonly #states = new Map<number, GateState>();
  readonly #waiting = new Map<number, Waiting>();
  #config: Config;
  #orders = 0;
  #shortLives = 0;
  #ending = false;

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
    try {
      await Promise.all(Array.from({ length: this.#count }, (_, index) => this.#fork(index)));
    } catch (error) {
      // One that cannot start is what is wrong with the config: none is tried again.
      this.#ending = true;
      kill(workers());
      throw error;
    }
  }

  /** All or none: where one worker cannot take it up, those that could go back. */
  async apply(config: Config): Promise<void> {
    const before = this.#config;
    this.#config = config;
    const failure = await this.#applyEverywhere(config);
    if (failure === undefined) return;
    this.#config = before;
    await this.#applyEverywhere(before);
    throw failure;
  }

  async metrics(): Promise<readonly MetricsPart[]> {
    const answers = await this.#askAll((id) => ({ kind: "metrics", id }));
    return answers.flatMap((answer) =>
      typeof answer === "object" && answer.kind === "metrics" ? [answer.part] : [],
    );
  }

  state(): GateState {
    const states = [...this.#states.values()];
    return {
      secretsUnavailable: [...new Set(states.flatMap(({ secretsUnavailable }) => secretsUnavailable))],
      recordsDropped: states.reduce((sum, { recordsDropped }) => sum + recordsDropped, 0),
    };
  }

  async approvals(): Promise<readonly PendingApproval[]> {
    return pendingIn(await this.#askAll((id) => ({ kind: "approvals", id })));
  }

  async resolveApproval(approval: string, resolution: Resolution): Promise<PendingApproval | undefined> {
    const answers = await this.#askAll((id) => ({ kind: "resolve", id, approval, resolution }));
    const [resolved] = pendingIn(answers);
    if (resolved !== undefined && holds(resolution)) spread(resolved, resolution);
    return resolved;
  }

  reopenRecords(): void {
    for (const worker of workers()) send(worker, { kind: "reopen" });
  }

  async drain(): Promise<void> {
    this.#ending = true;
    const alive = workers();
    const ended = alive.map((worker) => new Promise((resolve) => worker.once("exit", resolve)));
    for (const worker of alive) send(worker, { kind: "drain" });
    const patience = setTimeout(kill, this.#config.limits.drain_timeout + GRACE_MS, alive);
    await Promise.all(ended);
    clearTimeout(patience);
  }

  /** Resolves once the worker listens; rejects with what it says against that. */
  #fork(index: number): Promise<void> {
    const worker = cluster.fork();
    const life: Life = { index, listeningAt: undefined, problem: undefined };
    worker.once("online", () => send(worker, this.#startOrder(index)));
    return new Promise((resolve, reject) => {
      worker.on("message", (report: Report) => {
        if (report.kind === "listening") {
          life.listeningAt = performance.now();
          resolve();
        } else if (report.kind === "refused") {
          life.problem = report.message;
          reject(new Failure("E_CONFIG", "operator", report.message));
        } else this.#onReport(worker, report);
      });
      worker.once("exit", () => {
        reject(new Failure("E_INTERNAL", "gate", "A worker died while it was starting"));
        this.#onExit(worker, life);
      });
    });
  }

  #startOrder(index: number): Order {
    const { file, text, policy } = this.#config;
    return {
      kind: "start",
      text,
      file,
      generation: policy.generation,
      ticketSecret: this.#ticketSecret,
      share: { index, count: this.#count },
    };
  }

  #onReport(worker: Worker, report: Report): void {
    if (report.kind === "state") this.#states.set(worker.id, report.state);
    else if (report.kind === "word") spread(report.key, report.resolution);
    else if (report.kind === "done" || report.kind === "metrics" || report.kind === "approvals")
      this.#waiting.get(report.id)?.answer(report);
  }

  #onExit(worker: Worker, { index, listeningAt, problem }: Life): void {
    this.#states.delete(worker.id);
    for (const waiting of [...this.#waiting.values()]) {
      if (waiting.worker === worker.id) waiting.answer("gone");
    }
    if (this.#ending) return;
    const { pid, exitCode: code, signalCode: signal } = worker.process;
    this.#options.onWorkerDeath({ pid, code, signal, problem });
    const short = listeningAt === undefined || performance.now() - listeningAt < SHORT_LIFE_MS;
    this.#shortLives = short ? this.#shortLives + 1 : 0;
    if (this.#shortLives >= SHORT_LIVES) {
      process.exitCode = 1;
      process.kill(process.pid, "SIGTERM");
    } else void this.#fork(index).catch(() => undefined);
  }

  async #applyEverywhere({ file, text, policy }: Config): Promise<Failure | undefined> {
    const { generation } = policy;
    const answers = await this.#askAll((id) => ({ kind: "apply", id, text, file, generation }));
    for (const answer of answers) {
      if (typeof answer === "object" && answer.kind === "done" && answer.problem !== undefined) {
        return new Failure("E_CONFIG", "operator", answer.problem);
      }
    }
    if (!answers.includes("late")) return undefined;
    return new Failure("E_INTERNAL", "gate", "A worker did not answer in time");
  }

  #askAll(order: (id: number) => Order): Promise<readonly Answer[]> {
    return Promise.all(workers().map((worker) => this.#ask(worker, order)));
  }

  #ask(worker: Worker, order: (id: number) => Order): Promise<Answer> {
    this.#orders += 1;
    const id = this.#orders;
    return new Promise((resolve) => {
      const timer = setTimeout(() => answer("late"), ANSWER_MS);
      const answer = (given: Answer): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(given);
      };
      this.#waiting.set(id, { worker: worker.id, answer });
      send(worker, order(id));
    });
  }
}

function pendingIn(answers: readonly Answer[]): readonly PendingApproval[] {
  return answers.flatMap((answer) =>
    typeof answer === "object" && answer.kind === "approvals" ? answer.pending : [],
  );
}

/** One whose exit was heard of may still be listed. */
function workers(): readonly Worker[] {
  return Object.values(cluster.workers ?? {}).flatMap((worker) =>
    worker === undefined || worker.isDead() ? [] : [worker],
  );
}

/** A worker that is gone hears nothing, and its exit is heard elsewhere. */
function send(worker: Worker, order: Order): void {
  if (worker.isConnected()) worker.send(order, () => {});
}

function spread(key: ApprovalKey, resolution: Resolution): void {
  for (const worker of workers()) send(worker, { kind: "learn", key, resolution });
}

function kill(those: readonly Worker[]): void {
  for (const worker of those) worker.process.kill("SIGKILL");
}
