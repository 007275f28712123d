/** Starts the real program in the gate's namespace, with a config of the test's, and watches all that it says. */
import type { ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Message } from "./message-reader.ts";
import { statusOf } from "./message-reader.ts";
import type { Metrics } from "./metrics-text.ts";
import { parseMetrics } from "./metrics-text.ts";
import { BASE_ENV, unrefAll } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";
import { DNS_V4 } from "./private-internet.ts";
import { dial, PROXY } from "./wire-client.ts";

/** A config as DESIGN has it, as a value. `listen`, `ca`, `upstream.dns` and `upstream.ca_file` have defaults here. */
export type GateConfig = Readonly<Record<string, unknown>> & {
  readonly upstream?: object;
  readonly limits?: object;
};

export interface GateOptions {
  /** Added to `SECRET`, which holds the canary. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files beside the config, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** The program; default this checkout's. */
  readonly program?: readonly string[];
}

/** One line of records; see docs of the records for its fields. */
export type RecordLine = Readonly<Record<string, unknown>>;

export interface Gate {
  readonly pid: number;
  /** File with the CA's certificate. */
  readonly caPem: string;
  /** The CA's certificate. */
  readonly ca: string;
  readonly configFile: string;
  /** All records so far. */
  readonly records: readonly RecordLine[];
  /** The first record not taken yet that fits; waits for it. */
  record(fits?: Partial<Record<string, unknown>>): Promise<RecordLine>;
  /** The record at this place; waits for it. */
  recordAt(index: number): Promise<RecordLine>;
  /** Everything on stderr so far. */
  readonly log: string;
  untilLogged(pattern: RegExp, ms?: number): Promise<void>;
  admin(path: string): Promise<Message>;
  metrics(): Promise<Metrics>;
  /** Puts a config (or a text) in the file's place and resolves once the gate has tried it. */
  reload(config: GateConfig | string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** SIGTERM; resolves with the exit code. Fails if the secret was seen anywhere but at its origin. */
  stop(): Promise<number>;
  /** Resolves once the program has ended, whatever made it. */
  readonly ended: Promise<number>;
}

/** A reference to a variable of the gate's environment. `SECRET` holds the canary. */
export function fromEnv(name: string): string {
  return `\${env:${name}}`;
}

/** A reference to a file beside the config. */
export function fromFile(name: string): string {
  return `\${file:${name}}`;
}

/** The canary, as a config refers to it. */
export const SECRET = fromEnv("SECRET");

export const ADMIN = { host: "127.0.0.1", port: 9464 } as const;

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const PROGRAM = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN];
const START_MS = 40_000;
const STOP_MS = 15_000;

export async function startGate(
  internet: Internet,
  config: GateConfig,
  options: GateOptions = {},
): Promise<Gate> {
  const directory = join(internet.directory, `gate-${internet.gate.pid}`);
  mkdirSync(directory, { recursive: true });
  const configFile = join(directory, "sallyport.yaml");
  writeFileSync(join(directory, "root.pem"), internet.authority.certPem);
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(directory, name), text);
  writeFileSync(configFile, textOf(config));
  const command = [...(options.program ?? PROGRAM), "serve", "--config", configFile];
  const child = internet.gate.spawn(command, {
    cwd: directory,
    env: { ...BASE_ENV, SECRET: internet.canary.secret, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = listenTo(child, internet);
  const given = new Set(Object.keys(options.files ?? {}));
  const gate = gateOf(internet, child, { directory, configFile, output, given });
  internet.onClose(() => gate.stop());
  await untilReady(gate, child, output);
  return gate;
}

interface Output {
  readonly records: RecordLine[];
  readonly text: { stderr: string };
  readonly changes: EventEmitter;
}

function listenTo(child: ChildProcess, internet: Internet): Output {
  const output: Output = { records: [], text: { stderr: "" }, changes: new EventEmitter() };
  output.changes.setMaxListeners(0);
  const [outWatch, errWatch] = [internet.canary.watch("stdout"), internet.canary.watch("stderr")];
  if (child.stdout === null || child.stderr === null) throw new Error("The gate has no output");
  unrefAll(child);
  child.stdout.on("data", (bytes: Buffer) => outWatch.see(bytes));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const record = recordOf(line);
    if (record !== undefined) output.records.push(record);
    output.changes.emit("change");
  });
  child.stderr.on("data", (bytes: Buffer) => {
    errWatch.see(bytes);
    output.text.stderr += bytes.toString("utf8");
    output.changes.emit("change");
  });
  return output;
}

function recordOf(line: string): RecordLine | undefined {
  if (!line.startsWith("{")) return undefined;
  const value: RecordLine = JSON.parse(line);
  return "seq" in value ? value : undefined;
}

interface Parts {
  readonly directory: string;
  readonly configFile: string;
  readonly output: Output;
  /** Names of the files that the test put there. */
  readonly given: ReadonlySet<string>;
}

function gateOf(internet: Internet, child: ChildProcess, parts: Parts): Gate {
  const { directory, configFile, output, given } = parts;
  const taken = new Set<RecordLine>();
  const ended = once(child, "close").then(
    ([code, signal]) => (code as number | null) ?? signalStatus(signal),
  );
  let stopping: Promise<number> | undefined;
  const gate: Gate = {
    pid: child.pid ?? 0,
    configFile,
    records: output.records,
    ended,
    get caPem() {
      return caFile(join(directory, "certs"));
    },
    get ca() {
      return readFileSync(gate.caPem, "latin1");
    },
    get log() {
      return output.text.stderr;
    },
    async record(fits = {}) {
      const find = () => output.records.find((one) => !taken.has(one) && matches(one, fits));
      await untilTrue(output, `a record ${JSON.stringify(fits)}`, () => find() !== undefined);
      const found = find() ?? {};
      taken.add(found);
      return found;
    },
    async recordAt(index) {
      await untilTrue(output, `record ${index}`, () => output.records.length > index);
      return output.records[index] ?? {};
    },
    async untilLogged(pattern, ms) {
      await untilTrue(output, `${pattern} on stderr`, () => pattern.test(output.text.stderr), ms);
    },
    async admin(path) {
      const wire = await dial(internet, ADMIN);
      const host = `${ADMIN.host}:${ADMIN.port}`;
      return await wire.send(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    },
    async metrics() {
      return parseMetrics((await gate.admin("/metrics")).body);
    },
    async reload(config) {
      const text = textOf(config);
      // The same text again is no change.
      if (text === readFileSync(configFile, "utf8")) return;
      const before = (await gate.metrics()).sum("sallyport_config_reloads_total");
      writeFileSync(`${configFile}.new`, text);
      renameSync(`${configFile}.new`, configFile);
      await poll("the reload", 15_000, async () => {
        return (await gate.metrics()).sum("sallyport_config_reloads_total") > before;
      });
    },
    signal(name) {
      child.kill(name);
    },
    stop() {
      stopping ??= stop(child, ended).finally(() => {
        lookThroughFiles(directory, given, internet);
        internet.canary.assertUnseen();
      });
      return stopping;
    },
  };
  return gate;
}

async function stop(child: ChildProcess, ended: Promise<number>): Promise<number> {
  child.kill("SIGTERM");
  const timer = new AbortController();
  const late = delay(STOP_MS, "late" as const, { signal: timer.signal }).catch(() => "late" as const);
  const result = await Promise.race([ended, late]);
  timer.abort();
  if (result !== "late") return result;
  child.kill("SIGKILL");
  throw new Error(`The gate did not end within ${STOP_MS} ms of SIGTERM`);
}

/** JSON is YAML, and says what is meant without quoting rules. */
function textOf(config: GateConfig | string): string {
  if (typeof config === "string") return config;
  return JSON.stringify({
    version: 1,
    listen: { proxy: `${PROXY.host}:${PROXY.port}`, admin: `${ADMIN.host}:${ADMIN.port}` },
    ca: { dir: "certs" },
    workers: 1,
    records: { file: "-" },
    ...config,
    // A test that leaves something open is not to wait for it.
    limits: { drain_timeout: "1s", ...config.limits },
    upstream: { ca_file: "root.pem", dns: { servers: [DNS_V4] }, ...config.upstream },
  });
}

async function untilReady(gate: Gate, child: ChildProcess, output: Output): Promise<void> {
  await poll("readiness", START_MS, async () => {
    if (child.exitCode !== null)
      throw new Error(`The gate ended with ${child.exitCode}: ${output.text.stderr}`);
    return statusOf(await gate.admin("/readyz").catch(() => ({ start: "- 0" }))) === 200;
  }).catch((error: unknown) => {
    throw new Error(`The gate did not start: ${output.text.stderr}`, { cause: error });
  });
}

/** For what can only be asked, not awaited: another process's state. */
async function poll(what: string, ms: number, condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + ms;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`Waited in vain for ${what}`);
    await delay(20);
  }
}

function untilTrue(output: Output, what: string, condition: () => boolean, ms = 10_000): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(new Error(`Waited in vain for ${what}`))), ms);
    function finish(report: () => void): void {
      clearTimeout(timer);
      output.changes.off("change", check);
      report();
    }
    function check(): void {
      if (condition()) finish(resolve);
    }
    output.changes.on("change", check);
    check();
  });
}

function matches(record: RecordLine, fits: Partial<Record<string, unknown>>): boolean {
  return Object.entries(fits).every(([key, value]) => record[key] === value);
}

function caFile(directory: string): string {
  const files = readdirSync(directory).map((name) => join(directory, name));
  const certificates = files.filter((file) => readFileSync(file, "latin1").includes("BEGIN CERTIFICATE"));
  if (certificates.length !== 1) throw new Error(`${certificates.length} certificates in the CA's directory`);
  return certificates[0] ?? "";
}

/** Whatever the program wrote where it runs; the test's own secret files are left out. */
function lookThroughFiles(directory: string, given: ReadonlySet<string>, internet: Internet): void {
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    const file = join(directory, name);
    if (given.has(name) || !statSync(file).isFile()) continue;
    internet.canary.watch(`file ${name}`).see(readFileSync(file));
  }
}

function signalStatus(signal: unknown): number {
  return signal === "SIGKILL" ? 137 : 128;
}
