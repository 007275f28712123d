/** What the bench compares: a running proxy, started anew for each measurement. */
import type { Workload } from "./workloads.ts";

export interface Contender {
  /** The first process of its tree. */
  readonly pid: number;
  /** Where it listens, on 127.0.0.1 of the gate's namespace. */
  readonly port: number;
  /** PEM of the CA that signs the leaves it shows to clients. */
  readonly caFile: string;
  /** Throws where its own books contradict what the clients counted. */
  audit(workload: Workload, requests: number): Promise<void>;
  stop(): Promise<void>;
}
