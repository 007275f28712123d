/** `attach`: a namespace that somebody else made goes out through this very process, until it ends. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig } from "../config/load.ts";
import { watchConfig } from "../config/watch.ts";
import type { Gate } from "../gate.ts";
import type { Config, LoadResult } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { createLog, type Log } from "../record/log.ts";
import type { Target } from "../sandbox/attachment.ts";
import { renderProblem } from "./check.ts";
import { type Command, DEFAULT_CONFIG, EXIT, type OptionValues, stringOf, UsageError } from "./command.ts";
import { environment, hardenProcess } from "./environment.ts";
import { openGate } from "./fleet.ts";
import { jailConfigOf } from "./jail-config.ts";
import { Jails, type Place } from "./jails.ts";

export const attach: Command = {
  name: "attach",
  summary: "make an existing network namespace go out through this policy until it ends",
  usage: "(--pid N | --netns PATH) [--sandbox ID] [--config FILE] [--force]",
  optionsHelp: [
    ["--pid N", "the network namespace of this process"],
    ["--netns PATH", "the network namespace at this path, such as /run/netns/box"],
    ["--sandbox ID", "take this sandbox's network; default: the top-level network"],
    ["--config FILE", `default ${DEFAULT_CONFIG}; reloaded when it changes and on SIGHUP`],
    ["--force", "attach although the namespace has other ways out"],
  ],
  example: "sallyport attach --netns /run/netns/box --sandbox box",
  options: {
    pid: { type: "string" },
    netns: { type: "string" },
    sandbox: { type: "string" },
    config: { type: "string" },
    force: { type: "boolean" },
  },
  run: runAttach,
};

async function runAttach(values: OptionValues, positionals: readonly string[]): Promise<number> {
  if (positionals.length > 0) throw new UsageError("attach takes no arguments but its options");
  const place: Place = {
    sandbox: stringOf(values, "sandbox"),
    target: targetOf(values),
    force: values["force"] === true,
  };
  const env = environment();
  const chosen = jailConfigOf(values);
  if (chosen === undefined) return EXIT.usage;
  const log = createLog(process.stderr, (text) => text);
  hardenProcess(log);
  const gate = openGate(chosen.config, env, randomBytes(32));
  try {
    return await keep(place, chosen.config, gate, log);
  } finally {
    await gate.drain();
    log.flush();
  }
}

function targetOf(values: OptionValues): Target {
  const [pid, netns] = [stringOf(values, "pid"), stringOf(values, "netns")];
  if ((pid === undefined) === (netns === undefined)) throw new UsageError("Give --pid or --netns");
  if (netns !== undefined) return { path: resolve(netns), pid: undefined };
  if (pid === undefined || !/^[1-9][0-9]{0,9}$/.test(pid)) throw new UsageError("--pid must be a number");
  return { path: `/proc/${pid}/ns/net`, pid: Number(pid) };
}

/** Resolves with the exit code once the namespace has ended, or a signal came. */
function keep(place: Place, config: Config, gate: Gate, log: Log): Promise<number> {
  return new Promise((done, fail) => {
    let attached = false;
    const jails = new Jails(gate, config, {
      attached: (_, ports, taken) => {
        attached = true;
        log.info("Attached", { namespace: place.target.path, ports: ports.join(" ") });
        if (taken.length > 0) log.warn("The namespace listens there itself", { ports: taken.join(" ") });
      },
      ended: () => finish(() => done(EXIT.fine)),
      failed: (_, error) => {
        if (attached) log.error("The namespace cannot be entered again", { problem: error.message });
        else finish(() => fail(error));
      },
    });
    let { generation } = config.policy;
    const reload = (): void => {
      generation += 1;
      watching.reading();
      void apply(loadConfig(config.file, generation), place, { gate, jails, log });
    };
    const watching = watchConfig(config.file, [], reload);
    process.on("SIGHUP", reload);
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.on(signal, () => finish(() => done(EXIT.fine)));
    void jails.apply(config, [place]).then(() => {
      if (!attached) finish(() => fail(nothingThere(place.target)));
    });

    function finish(settle: () => void): void {
      watching.close();
      process.off("SIGHUP", reload);
      jails.close();
      settle();
    }
  });
}

/** All or nothing, as in `serve`. */
async function apply(
  loaded: LoadResult,
  place: Place,
  { gate, jails, log }: { readonly gate: Gate; readonly jails: Jails; readonly log: Log },
): Promise<void> {
  const problems = loaded.ok ? loaded.warnings : loaded.problems;
  for (const problem of problems) process.stderr.write(`${renderProblem(problem)}\n`);
  try {
    if (!loaded.ok) throw new Failure("E_CONFIG", "operator", "The file cannot be used");
    gate.apply(loaded.config);
    await jails.apply(loaded.config, [place]);
    log.info("Config taken up", { policy: loaded.config.policy.digest.slice(0, 12) });
  } catch (error) {
    const problem = error instanceof Error ? error.message : "Something broke";
    log.error("Config refused; the last good one stays in force", { problem });
  }
}

/** Why nothing was entered. */
export function nothingThere({ path, pid }: Target): Failure {
  return new Failure("E_CONFIG", "operator", wordsOf(path, pid));
}

function wordsOf(path: string, pid: number | undefined): string {
  if (pid === undefined) return `There is no namespace at ${path}`;
  if (!existsSync(`/proc/${pid}`)) return `There is no process ${pid}`;
  return `The network of process ${pid} is hidden from this user: be root, or the user who runs it`;
}
