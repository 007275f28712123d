/** One of several workers: does what its supervisor orders, and ends with it. */
import cluster from "node:cluster";
import { loadConfigText } from "../config/load.ts";
import type { Gate } from "../gate.ts";
import type { Config } from "../model/config.ts";
import { Failure } from "../model/failure.ts";
import { createLog } from "../record/log.ts";
import { type Order, openGate, type Report, startListening } from "./fleet.ts";
import { Jails, loggedJails, placesOf, type Share } from "./jails.ts";

const STATE_MS = 1_000;

/** Runs until the supervisor orders a drain or is gone. */
export function runWorker(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  return new Promise((resolve) => {
    let starting: Promise<Running | undefined> | undefined;
    // Signals are the supervisor's: a terminal sends them to the whole group.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
    process.on("disconnect", () => process.exit(1));
    process.on("message", (order: Order) => {
      if (order.kind === "start") starting = start(order, env);
      else if (starting === undefined) beforeStart(order);
      else {
        // An order that comes while it starts is obeyed after that.
        void starting.then((running) => running && obey(order, running, resolve));
      }
    });
  });
}

interface Running {
  readonly gate: Gate;
  readonly jails: Jails;
  readonly share: Share;
}

async function start(
  order: Extract<Order, { kind: "start" }>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Running | undefined> {
  try {
    const config = configOf(order);
    const gate = openGate(config, env, Buffer.from(order.ticketSecret, "base64"), (key, resolution) =>
      report({ kind: "word", key, resolution }),
    );
    const { share } = order;
    await startListening(gate, config, share);
    const jails = new Jails(gate, config, loggedJails(createLog(process.stderr, gate.redact.bind(gate))));
    await jails.apply(config, placesOf(config, share));
    tellState(gate);
    report({ kind: "listening" });
    return { gate, jails, share };
  } catch (error) {
    report({ kind: "refused", message: messageOf(error) }, () => process.exit(1));
    return undefined;
  }
}

/** Answers at once: the start order, which is on its way, carries what is in force. */
function beforeStart(order: Order): void {
  if (order.kind === "drain") process.exit(0);
  if (order.kind === "apply") report({ kind: "done", id: order.id, problem: undefined });
  if (order.kind === "metrics") report({ kind: "metrics", id: order.id, part: [] });
  if (order.kind === "approvals" || order.kind === "resolve") {
    report({ kind: "approvals", id: order.id, pending: [] });
  }
}

async function obey(order: Order, running: Running, end: () => void): Promise<void> {
  const { gate, jails } = running;
  switch (order.kind) {
    case "apply":
      report({ kind: "done", id: order.id, problem: applied(order, running) });
      break;
    case "metrics":
      report({ kind: "metrics", id: order.id, part: await gate.metrics() });
      break;
    case "approvals":
      report({ kind: "approvals", id: order.id, pending: gate.approvals() });
      break;
    case "resolve": {
      const resolved = gate.resolveApproval(order.approval, order.resolution);
      report({ kind: "approvals", id: order.id, pending: resolved === undefined ? [] : [resolved] });
      break;
    }
    case "learn":
      gate.learnApproval(order.key, order.resolution);
      break;
    case "reopen":
      gate.reopenRecords();
      break;
    case "drain":
      jails.close();
      await gate.drain();
      cluster.worker?.disconnect();
      end();
      process.exit(0);
      break;
    case "start":
      break;
  }
}

function applied(
  order: Extract<Order, { kind: "apply" }>,
  { gate, jails, share }: Running,
): string | undefined {
  try {
    const config = configOf(order);
    gate.apply(config);
    // Entering a namespace takes a while, and what goes wrong there is no fault of the config.
    void jails.apply(config, placesOf(config, share));
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** The supervisor has checked this very text; only what it refers to can have changed since. */
function configOf(order: { text: string; file: string; generation: number }): Config {
  const loaded = loadConfigText(order.text, order.file, order.generation);
  if (loaded.ok) return loaded.config;
  throw new Failure("E_CONFIG", "operator", loaded.problems[0]?.message ?? "The config cannot be used");
}

/** Pushed, so that the supervisor's pages never wait for a busy worker. */
function tellState(gate: Gate): void {
  let told = "";
  const tell = (): void => {
    const state = gate.state();
    const text = JSON.stringify(state);
    if (text === told) return;
    told = text;
    report({ kind: "state", state });
  };
  tell();
  setInterval(tell, STATE_MS).unref();
}

/** `sent`: it is on its way, or there is nobody to hear it. */
function report(message: Report, sent: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, sent);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "Something broke";
}
