/** Starts `run` and `attach` of the real program, as root or as an ordinary user, beside the private internet. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { RecordLine } from "./gate.ts";
import { BASE_ENV } from "./namespace.ts";
import type { Internet } from "./private-internet.ts";
import { DNS_V4 } from "./private-internet.ts";

export interface JailSetup {
  /** Owned by the user that the jail runs as. */
  readonly directory: string;
  readonly configFile: string;
  /** What comes before the command line of the program. */
  readonly prefix: readonly string[];
}

export interface JailOptions {
  /** Between `run` and `--`. */
  readonly options?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  /** Without the records. */
  readonly stderr: string;
  readonly records: readonly RecordLine[];
}

const MAIN = fileURLToPath(new URL("../../src/start.mjs", import.meta.url));
const PROGRAM = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN];
/** `nobody`, on every Linux. */
const ORDINARY = 65_534;

/** Of root's test the jail is an ordinary user's; anybody else is one already. */
export const ORDINARY_UID = process.getuid?.() === 0 ? ORDINARY : (process.getuid?.() ?? 0);

let setups = 0;

/** A folder with a config; `user` says whose. Secrets as in `startGate`. */
export function setUpJail(
  internet: Internet,
  config: Readonly<Record<string, unknown>>,
  user: "ordinary" | "same" = "ordinary",
): JailSetup {
  setups += 1;
  const directory = join(internet.directory, `jail-${setups}`);
  mkdirSync(directory);
  const root = process.getuid?.() === 0;
  const configFile = join(directory, "sallyport.yaml");
  writeFileSync(join(directory, "root.pem"), internet.authority.certPem);
  writeFileSync(configFile, jailConfig(config));
  if (root && user === "ordinary") {
    chmodSync(internet.directory, 0o711);
    for (const path of [directory, configFile]) chownSync(path, ORDINARY, ORDINARY);
  }
  const drop = ["setpriv", "--reuid", `${ORDINARY}`, "--regid", `${ORDINARY}`, "--clear-groups", "--"];
  return { directory, configFile, prefix: root && user === "ordinary" ? drop : [] };
}

function jailConfig({ upstream, ...config }: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    version: 1,
    ca: { dir: "certs" },
    ...config,
    upstream: { ca_file: "root.pem", dns: { servers: [DNS_V4] }, ...(upstream as object | undefined) },
  });
}

/** The program with these arguments, in the gate's namespace. */
export function spawnProgram(
  internet: Internet,
  { directory, prefix }: JailSetup,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  const child = internet.gate.spawn([...prefix, ...PROGRAM, ...args], {
    cwd: directory,
    env: { ...BASE_ENV, SECRET: internet.canary.secret, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  internet.onClose(() => child.kill("SIGKILL"));
  return child;
}

export function spawnJail(
  internet: Internet,
  setup: JailSetup,
  command: readonly string[],
  { options = [], env }: JailOptions = {},
): ChildProcess {
  return spawnProgram(
    internet,
    setup,
    ["run", "--config", setup.configFile, ...options, "--", ...command],
    env,
  );
}

/** Runs a command in a jail to its end; nothing that it prints may hold the secret. */
export async function runJail(
  internet: Internet,
  setup: JailSetup,
  command: readonly string[],
  options: JailOptions = {},
): Promise<Ended> {
  const child = spawnJail(internet, setup, command, options);
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(options.stdin ?? "");
  return await endOf(internet, child);
}

export async function endOf(internet: Internet, child: ChildProcess): Promise<Ended> {
  const watch = internet.canary.watch("output of a jail");
  const pieces = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.on("data", (bytes: Buffer) => {
      watch.see(bytes);
      pieces[name] += bytes.toString("utf8");
    });
  }
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  const lines = pieces.stderr.split("\n");
  const told = [...lines, ...pieces.stdout.split("\n")].filter(isRecord);
  return {
    code: code ?? (signal === null ? -1 : 128),
    stdout: pieces.stdout,
    stderr: lines.filter((line) => !isRecord(line)).join("\n"),
    records: told.map((line) => JSON.parse(line) as RecordLine),
  };
}

function isRecord(line: string): boolean {
  return line.startsWith('{"time"');
}

/** A Python program on the command line. */
export function python(program: string): readonly string[] {
  return ["/usr/bin/python3", "-c", program];
}
