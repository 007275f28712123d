/** What the commands know of one running gate: what it is made of, what it shows, what it is told. */
import type { Server } from "node:net";
import type { ApprovalKey, PendingApproval, Resolution } from "./hooks/approvals.ts";
import type { JailDoor } from "./jail-door.ts";
import type { Config, Endpoint, GatewayEndpoint } from "./model/config.ts";
import type { Ca } from "./pki/ca.ts";
import type { MetricsPart } from "./record/metrics.ts";

export interface GateOptions {
  readonly config: Config;
  readonly ca: Ca;
  /** 32 bytes, the same in all workers. */
  readonly ticketSecret: Uint8Array;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** Names this process's life in records. */
  readonly session: string;
  /** Told of an approval that was heard here and holds for longer: the other workers have to learn it. */
  readonly spread?: ((key: ApprovalKey, resolution: Resolution) => void) | undefined;
}

/** What the operator's pages say of one gate. */
export interface GateState {
  readonly secretsUnavailable: readonly string[];
  readonly recordsDropped: number;
}

export interface Gate {
  /** Takes connections of this listener from now on. */
  readonly listener: Server;
  /** A door for one sandbox whose network is ours alone; without an id for whoever the top-level `network` is for. */
  openDoor(sandbox: string | undefined): JailDoor;
  /** Takes what the firewall redirects here, from now until the drain. Rejects with `E_CONFIG`. */
  openGateway(gateway: GatewayEndpoint): Promise<void>;
  /** Takes base-URL requests at this address, from now until the drain. Rejects with `E_CONFIG`. */
  openReverse(reverse: Endpoint): Promise<void>;
  /** Puts another config in force: at once, as a whole, and for what is under way too. Throws `E_CONFIG`. */
  apply(config: Config): void;
  metrics(): Promise<MetricsPart>;
  state(): GateState;
  /** Hides what is secret in a text. */
  redact(text: string): string;
  /** What waits for a person's word here. */
  approvals(): readonly PendingApproval[];
  /** Gives it; undefined where nothing of this id waits here. */
  resolveApproval(id: string, resolution: Resolution): PendingApproval | undefined;
  /** A word that holds for longer. */
  learnApproval(key: ApprovalKey, resolution: Resolution): void;
  /** Opens the records file anew, after a rotation. */
  reopenRecords(): void;
  /** Stops accepting, lets what is under way end, cuts what has not after `drain_timeout`; then all is closed. */
  drain(): Promise<void>;
}
