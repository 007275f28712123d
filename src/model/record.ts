/** What is written of an exchange: facts without payload. Shapes only. */
import type { Reason } from "./decision.ts";
import type { Listener, Visibility } from "./exchange.ts";
import type { FailureCode, Fault } from "./failure.ts";

/** A metric label: closed. */
export type Protocol = "http/1.1" | "h2" | "ws" | "grpc" | "tls-tunnel" | "tcp" | "dns";

/** One line of records, before the writer adds `time`, `session` and `seq`. Undefined is written as null. */
export interface ExchangeRecord {
  /** Milliseconds since the epoch at which the exchange began. */
  readonly time: number;
  readonly sandbox: string | undefined;
  readonly client: string;
  readonly listener: Listener;
  readonly protocol: Protocol;
  readonly visibility: Visibility;
  readonly method: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** Without query. */
  readonly path: string | undefined;
  readonly verdict: "allow" | "deny";
  /** Undefined where the exchange failed before it was decided. */
  readonly reason: Reason | undefined;
  readonly rule: string | undefined;
  readonly would: "deny" | undefined;
  /** Names of the injected fields. */
  readonly injected: readonly string[];
  /** The answer held a secret, which was masked. Counted and logged; it is not in the line. */
  readonly scrubbed?: boolean | undefined;
  /** First 12 characters of the policy's digest. */
  readonly policy: string;
  /** The status the client got; undefined where it got none. */
  readonly status: number | undefined;
  /** Body bytes towards the upstream, and back from it. */
  readonly bytesOut: number;
  readonly bytesIn: number;
  readonly durationMs: number;
  readonly failure: FailureCode | undefined;
  /** On whose side it failed. Metric only. */
  readonly fault?: Fault | undefined;
  /** Milliseconds spent in the gate itself before the request was sent; undefined if it never was. Metric only. */
  readonly overheadMs: number | undefined;
}

/** What is counted. */
export interface Counter {
  /** Writes the record and counts it. Never throws. */
  exchange(record: ExchangeRecord): void;
  upstreamConnected(ms: number): void;
  connectionOpened(listener: Listener): void;
  connectionClosed(listener: Listener): void;
  leafCertificate(source: "minted" | "cached" | "refused"): void;
}

/** The last room of the path. */
export interface Recorder extends Counter {
  /** A fault of the gate's own, which the client is told nothing of: the operator's log has to be. */
  broke(cause: unknown): void;
}
