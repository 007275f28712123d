/** The running gate as `serve` handles it, in this process or in several; here the one of this process alone. */
import { randomBytes } from "node:crypto";
import { listen } from "../accept/listener.ts";
import { createGate } from "../app.ts";
import type { Gate, GateState } from "../gate.ts";
import { type ApprovalKey, holds, type PendingApproval, type Resolution } from "../hooks/approvals.ts";
import type { Config } from "../model/config.ts";
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
  /** What waits for a person's word, in whichever process. */
  approvals(): Promise<readonly PendingApproval[]>;
  /** Gives it; undefined where nothing of this id waits. */
  resolveApproval(id: string, resolution: Resolution): Promise<PendingApproval | undefined>;
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
  | { readonly kind: "approvals"; readonly id: number }
  | {
      readonly kind: "resolve";
      readonly id: number;
      readonly approval: string;
      readonly resolution: Resolution;
    }
  | { readonly kind: "learn"; readonly key: ApprovalKey; readonly resolution: Resolution }
  | { readonly kind: "reopen" }
  | { readonly kind: "drain" };

/** What a worker tells its supervisor. */
export type Report =
  | { readonly kind: "listening" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "done"; readonly id: number; readonly problem: string | undefined }
  | { readonly kind: "metrics"; readonly id: number; readonly part: MetricsPart }
  /** To `approvals` all of them, to `resolve` the one that was resolved. */
  | { readonly kind: "approvals"; readonly id: number; readonly pending: readonly PendingApproval[] }
  | { readonly kind: "state"; readonly state: GateState }
  /** It was given here and holds for longer. */
  | { readonly kind: "word"; readonly key: ApprovalKey; readonly resolution: Resolution };

export interface WorkerDeath {
  readonly pid: number | undefined;
  readonly code: number | null;
  readonly signal: string | null;
  /** What kept it from starting, as it said itself. */
  readonly problem: string | undefined;
}

export interface FleetOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly onWorkerDeath: (death: WorkerDeath) => void;
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
    approvals: async () => gate.approvals(),
    resolveApproval: async (id, resolution) => {
      const resolved = gate.resolveApproval(id, resolution);
      if (resolved !== undefined && holds(resolution)) gate.learnApproval(resolved, resolution);
      return resolved;
    },
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
  spread?: (key: ApprovalKey, resolution: Resolution) => void,
): Gate {
  const session = `${Date.now().toString(36)}-${process.pid.toString(36)}-${randomBytes(3).toString("hex")}`;
  const ca = openCa(config.caDir);
  return createGate({ config, ca, ticketSecret, env, version: VERSION, session, spread });
}

export async function startListening(gate: Gate, { listen: doors }: Config, share: Share): Promise<void> {
  if (doors.proxy !== undefined) await listen(gate.listener, doors.proxy, "listen.proxy");
  if (doors.reverse !== undefined) await gate.openReverse(doors.reverse);
  // One process alone: it knows which names the addresses stand for that its DNS gave out.
  if (doors.gateway !== undefined && share.index === 0) await gate.openGateway(doors.gateway);
}
