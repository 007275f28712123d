/** `run`: a command whose only way out is this very process. */
import { randomBytes } from "node:crypto";
import type { Socket as Datagrams } from "node:dgram";
import type { Server } from "node:net";
import type { Gate } from "../gate.ts";
import type { JailDoor } from "../jail-door.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { openCa } from "../pki/ca.ts";
import { bundleOf, truststoreOf } from "../pki/trust-bundle.ts";
import { trustEnvironment } from "../pki/trust-env.ts";
import { createLog } from "../record/log.ts";
import { STDERR_RECORDS } from "../record/sink.ts";
import type { Openings } from "../sandbox/hand-over.ts";
import { startJail } from "../sandbox/jail.ts";
import { OWN_FOLDER } from "../sandbox/plan.ts";
import { portsOf } from "../sandbox/ports.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment, hardenProcess } from "./environment.ts";
import { openGate } from "./fleet.ts";
import { hiddenOf, type JailConfig, jailConfigOf } from "./jail-config.ts";

export const run: Command = {
  name: "run",
  summary: "start a command in a jail whose only way out is this policy; exits with its status",
  usage: "[--config FILE] [--sandbox ID | --network FILE] -- COMMAND…",
  optionsHelp: [
    ["--config FILE", `default ${DEFAULT_CONFIG}; read once, at the start`],
    ["--sandbox ID", "take this sandbox's network and variables; default: the top-level network"],
    ["--network FILE", "take this file's network section instead"],
  ],
  example: "sallyport run -- curl https://api.github.com/",
  options: { config: { type: "string" }, sandbox: { type: "string" }, network: { type: "string" } },
  run: runRun,
};

/** Nobody waits for a jail that has ended. */
const DRAIN_MS = 500;
const BUNDLE = "ca-bundle.pem";
const TRUSTSTORE = "truststore.p12";
/** Of a proxy that the jail cannot reach, and does not need. */
const PROXY_VARIABLES = /^(?:https?|ftp|all|no)_proxy$/i;

async function runRun(values: OptionValues, positionals: readonly string[]): Promise<number> {
  if (positionals.length === 0) throw new UsageError("Name a command after --");
  const env = environment();
  const chosen = jailConfigOf(values);
  if (chosen === undefined) return EXIT.usage;
  const { config } = chosen;
  const log = createLog(process.stderr, (text) => text);
  hardenProcess(log);
  if (config.policy.mode === "evaluate_only")
    log.warn("The policy is evaluated only: next to nothing is refused");
  const quick = { ...config.limits, drain_timeout: Math.min(config.limits.drain_timeout, DRAIN_MS) };
  const handles: Handles = { servers: [], sockets: [] };
  const signals = heldSignals();
  let gate: Gate | undefined;
  // Two processes at work at once: the gate is open before the jail has anything to hand over.
  const starting = startJail({
    argv: positionals,
    uid: process.getuid?.() ?? 0,
    gid: process.getgid?.() ?? 0,
    ...surroundings(chosen, env, stringOf(values, "network")),
    ports: portsOf(config.policy, chosen.sandbox),
    onOpen: (openings) => {
      if (gate === undefined) throw new Failure("E_CONFIG", "operator", "There is no gate to go out through");
      connect(openings, gate.openDoor(chosen.sandbox), handles);
    },
    onSharedProcesses: () => {
      log.warn("The command sees this user's processes: /proc cannot be mounted here");
    },
  });
  // Whatever it comes to is awaited below, or of no interest where there is no gate.
  starting.catch(() => undefined);
  gate = openGate({ ...config, recordsFile: recordsOf(config), limits: quick }, env, randomBytes(32));
  try {
    const jail = await starting;
    signals.handTo((signal) => jail.signal(signal));
    return await jail.ended;
  } finally {
    for (const server of handles.servers) server.close();
    for (const socket of handles.sockets) socket.close();
    await gate.drain();
    log.flush();
  }
}

/** From the start, for the command may be there before we know of it. What comes too early is handed on later. */
function heldSignals(): { readonly handTo: (take: (signal: NodeJS.Signals) => void) => void } {
  const early: NodeJS.Signals[] = [];
  let take = (signal: NodeJS.Signals): void => void early.push(signal);
  // A terminal sends these to the whole group, so the command has them already.
  for (const signal of ["SIGINT", "SIGQUIT"] as const) process.on(signal, () => {});
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => take(signal));
  return {
    handTo: (taker) => {
      take = taker;
      for (const signal of early) taker(signal);
    },
  };
}

interface Handles {
  readonly servers: Server[];
  readonly sockets: Datagrams[];
}

function connect({ tcp, udp }: Openings, door: JailDoor, handles: Handles): void {
  for (const handle of tcp.values()) handles.servers.push(door.accept(handle));
  for (const socket of udp) {
    door.answer(socket);
    handles.sockets.push(socket);
  }
}

function surroundings(
  { config, sandbox }: JailConfig,
  env: Readonly<Record<string, string | undefined>>,
  networkFile: string | undefined,
): {
  readonly env: Readonly<Record<string, string>>;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly roots: string;
  readonly secretFiles: readonly string[];
  readonly readOnlyFiles: readonly string[];
} {
  const { variables, secretFiles, readOnlyFiles } = hiddenOf(config, networkFile);
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !variables.has(entry[0]) && !PROXY_VARIABLES.test(entry[0]),
  );
  const trust = trustEnvironment({
    bundle: `${OWN_FOLDER}/${BUNDLE}`,
    truststore: `${OWN_FOLDER}/${TRUSTSTORE}`,
  });
  const ca = openCa(config.caDir);
  const own = config.sandboxes.find(({ id }) => id === sandbox)?.env;
  return {
    env: { ...Object.fromEntries(kept), ...trust, ...own },
    files: new Map<string, Uint8Array>([
      [BUNDLE, Buffer.from(bundleOf(ca), "latin1")],
      [TRUSTSTORE, truststoreOf(ca)],
    ]),
    roots: BUNDLE,
    secretFiles,
    readOnlyFiles,
  };
}

/** Stdout is the command's. */
function recordsOf({ recordsFile }: Config): string {
  return recordsFile === "-" ? STDERR_RECORDS : recordsFile;
}
