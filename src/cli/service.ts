/** The process that the operator started: its fleet, its reloads one after the other, its drain. */

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Admin, Readiness } from "../admin/server.ts";
import { loadConfig } from "../config/load.ts";
import { type ConfigWatch, watchConfig } from "../config/watch.ts";
import type { Config, LoadResult } from "../model/config.ts";
import { createLog, type Log } from "../record/log.ts";
import { createMetrics, type Metrics } from "../record/metrics.ts";
import { createSecrets, type Secrets } from "../secrets/secrets.ts";
import { firstError, renderProblem } from "./check.ts";
import { EXIT } from "./command.ts";
import { hardenProcess } from "./environment.ts";
import { createLocalFleet, type Fleet, type WorkerDeath } from "./fleet.ts";
import { createGatewayFirewall, type GatewayFirewall } from "./gateway-firewall.ts";
import { greeting } from "./greeting.ts";
import { loggedJails } from "./jails.ts";
import { createPages, listenPages } from "./pages.ts";
import { signalled } from "./signals.ts";
import { VERSION } from "./version.ts";
import { warnOfRestart, warnOfSecrets, warnOfVariables } from "./warnings.ts";
import { createWorkerFleet } from "./worker-fleet.ts";

/** Resolves with the exit code once the gate has drained. */
export function runService(config: Config, env: Environment): Promise<number> {
  return new Service(config, env).run();
}

type Environment = Readonly<Record<string, string | undefined>>;

class Service {
  readonly #env: Environment;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #fleet: Fleet;
  readonly #firewall: GatewayFirewall;
  /** What the listeners, the CA, the workers and the records file are of, until the next start. */
  readonly #started: Config;
  #config: Config;
  #secrets: Secrets;
  #generation = 1;
  #reloaded: Readiness["config"];
  #reloading: Promise<void> = Promise.resolve();
  #watching: ConfigWatch | undefined;
  #listening = false;
  #draining = false;

  constructor(config: Config, env: Environment) {
    this.#started = config;
    this.#config = config;
    this.#env = env;
    this.#secrets = this.#secretsOf(config);
    this.#log = createLog(process.stderr, (text) => this.#secrets.redact(text));
    hardenProcess(this.#log);
    this.#metrics = createMetrics({
      version: VERSION,
      node: process.versions.node,
      rules: () => [],
      sandboxes: () => [],
      // A fleet of one is this process, and counts it itself.
      process: workersOf(config) > 1,
    });
    this.#fleet = this.#createFleet();
    this.#firewall = createGatewayFirewall(config.listen.gateway, this.#log, process.stderr);
    this.#reloaded = { ok: true, at: Date.now(), problem: undefined };
    this.#tookUp(config);
  }

  async run(): Promise<number> {
    const stopped = signalled(["SIGTERM", "SIGINT"]);
    process.on("SIGHUP", () => this.#onHangUp());
    const admin = this.#openPages();
    try {
      await this.#open(admin);
    } catch (error) {
      await this.#close(admin);
      throw error;
    }
    const { file } = this.#config;
    this.#watching = watchConfig(file, [], () => this.#reload("the file changed"));
    this.#listening = true;
    process.stderr.write(greeting(this.#config));
    warnOfSecrets(this.#log, this.#secrets);
    // What changed while it started, nobody watched.
    if (hasChanged(this.#config)) this.#reload("the file changed");
    const signal = await stopped;
    this.#watching.close();
    this.#draining = true;
    this.#log.info("Draining", { signal });
    await this.#close(admin);
    this.#log.info("Stopped");
    this.#log.flush();
    return typeof process.exitCode === "number" ? process.exitCode : EXIT.fine;
  }

  #onHangUp(): void {
    // Until then everything is about to be opened and read anyway.
    if (!this.#listening) return;
    this.#fleet.reopenRecords();
    this.#reload("SIGHUP");
  }

  async #open(admin: Admin | undefined): Promise<void> {
    warnOfVariables(this.#log, this.#env);
    await this.#fleet.start();
    if (admin !== undefined) await listenPages(admin, this.#config);
    // In force before the start is told of, and not in another instance's place where the ports are that one's.
    await this.#firewall.apply(this.#config);
  }

  async #close(admin: Admin | undefined): Promise<void> {
    await this.#firewall.release();
    await this.#fleet.drain();
    await admin?.close();
  }

  #createFleet(): Fleet {
    const count = workersOf(this.#config);
    const options = {
      config: this.#config,
      env: this.#env,
      jailEvents: loggedJails(this.#log),
      onWorkerDeath: ({ pid, code, signal, problem }: WorkerDeath) => {
        this.#log.error("A worker died", { pid, code: code ?? "-", signal: signal ?? "-", problem });
      },
    };
    return count === 1 ? createLocalFleet(options) : createWorkerFleet(options, count);
  }

  #openPages(): Admin | undefined {
    return createPages({
      config: () => this.#config,
      secrets: () => this.#secrets,
      metrics: this.#metrics,
      fleet: this.#fleet,
      state: () => ({ listening: this.#listening, draining: this.#draining, config: this.#reloaded }),
    });
  }

  /** One reload at a time, in the order in which they were asked for. */
  #reload(why: string): void {
    this.#reloading = this.#reloading
      .then(() => this.#reloadNow(why))
      // One that breaks must not be the last.
      .catch((error: unknown) => this.#refused(why, error instanceof Error ? error.message : "It broke"));
  }

  async #reloadNow(why: string): Promise<void> {
    if (this.#draining) return;
    this.#watching?.reading();
    const loaded: LoadResult = loadConfig(this.#config.file, this.#generation + 1);
    if (!loaded.ok) {
      for (const problem of loaded.problems) process.stderr.write(`${renderProblem(problem)}\n`);
      const first = firstError(loaded.problems);
      this.#refused(why, first === undefined ? "The file cannot be used" : renderProblem(first));
      return;
    }
    try {
      this.#generation += 1;
      await this.#takeUp(loaded.config);
    } catch (error) {
      this.#refused(why, error instanceof Error ? error.message : "The config cannot be used");
      return;
    }
    for (const problem of loaded.warnings) process.stderr.write(`${renderProblem(problem)}\n`);
    warnOfRestart(this.#log, this.#started, loaded.config);
    this.#tookUp(loaded.config);
    this.#log.info("Config taken up", { why, policy: loaded.config.policy.digest.slice(0, 12) });
    warnOfSecrets(this.#log, this.#secrets);
  }

  /** Rules first: a sandbox that is new is then held to its address before it is believed. */
  async #takeUp(config: Config): Promise<void> {
    await this.#firewall.apply(config);
    try {
      await this.#fleet.apply(config);
    } catch (error) {
      await this.#firewall.apply(this.#config);
      throw error;
    }
  }

  #secretsOf({ templates }: Config): Secrets {
    return createSecrets(templates, { env: this.#env, now: () => performance.now() });
  }

  #tookUp(config: Config): void {
    const { policy } = config;
    this.#config = config;
    this.#secrets = this.#secretsOf(config);
    const at = Date.now();
    this.#reloaded = { ok: true, at, problem: undefined };
    this.#metrics.configReload("success", at / 1000);
    this.#metrics.evaluateOnly(policy.mode === "evaluate_only");
  }

  #refused(why: string, problem: string): void {
    const at = Date.now();
    this.#reloaded = { ok: false, at, problem };
    this.#metrics.configReload("failure", at / 1000);
    this.#log.error("Config refused; the last good one stays in force", { why, problem });
  }
}

function workersOf({ workers }: Config): number {
  return workers === "auto" ? availableParallelism() : workers;
}

function hasChanged({ file, text }: Config): boolean {
  try {
    return new TextDecoder().decode(readFileSync(file)) !== text;
  } catch {
    // As for a file that goes away later: the reload says what is wrong with it.
    return true;
  }
}
