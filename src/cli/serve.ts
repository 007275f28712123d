/** `serve`: every listener of one config, its reload, its drain and the operator's pages. */
import cluster from "node:cluster";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { cannotListen } from "../accept/listener.ts";
import { type Admin, createAdmin } from "../admin/server.ts";
import { loadConfig } from "../config/load.ts";
import { type ConfigWatch, watchConfig } from "../config/watch.ts";
import type { Config, LoadResult } from "../model/config.ts";
import { createLog, type Log } from "../record/log.ts";
import { createMetrics, METRICS_CONTENT_TYPE, type Metrics, sumMetrics } from "../record/metrics.ts";
import { createSecrets, type Secrets } from "../secrets/secrets.ts";
import { problemsOf, renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment, hardenProcess, ignoredVariables } from "./environment.ts";
import { createLocalFleet, type Fleet, type WorkerDeath } from "./fleet.ts";
import { createGatewayFirewall, type GatewayFirewall } from "./gateway-firewall.ts";
import { greeting } from "./greeting.ts";
import { loggedJails } from "./jails.ts";
import { VERSION } from "./version.ts";
import { runWorker } from "./worker.ts";
import { createWorkerFleet } from "./worker-fleet.ts";

export const serve: Command = {
  name: "serve",
  summary: "run every listener of a config until SIGTERM",
  usage: "[--config FILE]",
  optionsHelp: [["--config FILE", `default ${DEFAULT_CONFIG}; reloaded when it changes and on SIGHUP`]],
  example: "sallyport serve --config /etc/sallyport/sallyport.yaml",
  options: { config: { type: "string" } },
  run: runServe,
};

async function runServe(values: OptionValues, positionals: readonly string[]): Promise<number> {
  if (positionals.length > 0) throw new UsageError("serve takes no arguments; name the file with --config");
  const env = environment();
  if (cluster.isWorker) {
    hardenProcess(createLog(process.stderr, (text) => text));
    await runWorker(env);
    return EXIT.fine;
  }
  const loaded = loadConfig(stringOf(values, "config") ?? DEFAULT_CONFIG, 1);
  for (const problem of problemsOf(loaded)) process.stderr.write(`${renderProblem(problem)}\n`);
  if (!loaded.ok) return EXIT.usage;
  return new Service(loaded.config, env).run();
}

interface Reloaded {
  readonly ok: boolean;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly problem: string | undefined;
}

/** The process that the operator started. */
class Service {
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #log: Log;
  readonly #metrics: Metrics;
  readonly #fleet: Fleet;
  readonly #firewall: GatewayFirewall;
  /** What the listeners, the CA, the workers and the records file are of, until the next start. */
  readonly #started: Config;
  #config: Config;
  #secrets: Secrets;
  #generation = 1;
  #reloaded: Reloaded;
  #reloading: Promise<void> = Promise.resolve();
  #watching: ConfigWatch | undefined;
  #listening = false;
  #draining = false;

  constructor(config: Config, env: Readonly<Record<string, string | undefined>>) {
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

  /** Resolves with the exit code once the gate has drained. */
  async run(): Promise<number> {
    const stopped = signalled(["SIGTERM", "SIGINT"]);
    process.on("SIGHUP", () => this.#onHangUp());
    const admin = this.#createAdmin();
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
    this.#sayWhatIsMissing();
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
    for (const name of ignoredVariables(this.#env)) {
      const instead = name === "NODE_EXTRA_CA_CERTS" ? "upstream.ca_file" : undefined;
      this.#log.warn("A variable has no effect here", { name, instead });
    }
    await this.#fleet.start();
    if (admin !== undefined) await listenAdmin(admin, this.#config);
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

  #createAdmin(): Admin | undefined {
    const { admin } = this.#config.listen;
    if (admin === undefined) return undefined;
    return createAdmin({
      host: admin.host,
      port: admin.port,
      version: VERSION,
      token: () => this.#adminToken(),
      approvals: {
        pending: () => this.#fleet.approvals(),
        resolve: (id, resolution) => this.#fleet.resolveApproval(id, resolution),
      },
      metrics: async () => {
        const own = await this.#metrics.json();
        const text = await sumMetrics([own, ...(await this.#fleet.metrics())]);
        return { type: METRICS_CONTENT_TYPE, text };
      },
      ready: () => ({
        listening: this.#listening,
        draining: this.#draining,
        mode: this.#config.policy.mode,
        policy: this.#config.policy.digest.slice(0, 12),
        config: this.#reloaded,
        ...this.#fleet.state(),
      }),
    });
  }

  #adminToken(): string | undefined {
    const key = this.#config.listen.admin?.token;
    if (key === undefined) return undefined;
    const rendered = this.#secrets.render(key);
    // A token that cannot be had opens nothing, rather than everything.
    return rendered.ok ? rendered.value : "";
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
      const first = loaded.problems[0];
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
    this.#sayWhatNeedsRestart(loaded.config);
    this.#tookUp(loaded.config);
    this.#log.info("Config taken up", { why, policy: loaded.config.policy.digest.slice(0, 12) });
    this.#sayWhatIsMissing();
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

  /** Missing secrets refuse, and the program starts without them: nobody else would say so. */
  #sayWhatIsMissing(): void {
    for (const { key, problem } of this.#secrets.unavailable()) {
      this.#log.warn("A secret cannot be had; what needs it is refused", { key, problem });
    }
    for (const key of this.#secrets.short()) {
      this.#log.warn("A secret is under 8 bytes, too short to be masked in answers and logs", { key });
    }
  }

  #sayWhatNeedsRestart(next: Config): void {
    for (const key of ["listen", "caDir", "workers", "recordsFile"] as const) {
      if (JSON.stringify(next[key]) === JSON.stringify(this.#started[key])) continue;
      this.#log.warn("A change needs a restart to take effect", { key: YAML_KEYS[key] });
    }
  }
}

const YAML_KEYS = {
  listen: "listen",
  caDir: "ca.dir",
  workers: "workers",
  recordsFile: "records.file",
} as const;

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

/** Throws `E_CONFIG` where the address cannot be had. */
async function listenAdmin(admin: Admin, { listen }: Config): Promise<void> {
  try {
    await admin.listen();
  } catch (error) {
    const { host = "", port } = listen.admin ?? {};
    const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    throw cannotListen(where, "listen.admin", error as NodeJS.ErrnoException);
  }
}

/** Resolves with the first of these signals; a second one ends the process at once. */
function signalled(signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    for (const signal of signals) {
      process.on(signal, () => {
        if (seen) process.exit(EXIT.broke);
        seen = true;
        resolve(signal);
      });
    }
  });
}
