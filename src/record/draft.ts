/** The record of one exchange while it is still under way; it is written exactly once. */
import type { Decision, Denial, Reason } from "../model/decision.ts";
import type { Client, Destination, Listener, Visibility } from "../model/exchange.ts";
import type { Failure, FailureCode } from "../model/failure.ts";
import type { ExchangeRecord, Protocol, Recorder } from "../model/record.ts";

/** A client that went away is no failure of anybody's; its record has neither status nor code. */
const CLIENT_LEFT = 499;

export class ExchangeDraft {
  readonly #recorder: Recorder;
  readonly #time = Date.now();
  readonly #started = performance.now();
  readonly #listener: Listener;
  readonly #client: string;
  #written = false;
  #waited = 0;
  #overhead: number | undefined = undefined;
  sandbox: string | undefined = undefined;
  protocol: Protocol = "http/1.1";
  visibility: Visibility = "request";
  method: string | undefined = undefined;
  destination: Destination | undefined = undefined;
  /** With its query, which is cut off when it is written. */
  target: string | undefined = undefined;
  verdict: "allow" | "deny" = "deny";
  reason: Reason | undefined = undefined;
  rule: string | undefined = undefined;
  would: "deny" | undefined = undefined;
  injected: readonly string[] = NONE;
  policy = "";
  status: number | undefined = undefined;
  bytesOut = 0;
  bytesIn = 0;
  failure: FailureCode | undefined = undefined;

  constructor(recorder: Recorder, door: { readonly listener: Listener; readonly address: string }) {
    this.#recorder = recorder;
    this.#listener = door.listener;
    this.#client = door.address;
  }

  asked({
    client,
    destination,
  }: {
    readonly client: Client | undefined;
    readonly destination: Destination;
  }): void {
    this.sandbox = client?.sandbox;
    this.destination = destination;
  }

  decided(decision: Decision): void {
    if (decision.verdict === "deny") {
      this.refused(decision);
      return;
    }
    this.verdict = "allow";
    this.reason = decision.reason;
    this.rule = decision.permit.rule;
    this.would = decision.would;
  }

  refused(denial: Denial): void {
    this.verdict = "deny";
    this.reason = denial.reason;
    this.rule = denial.rule;
    this.would = undefined;
    this.injected = NONE;
  }

  failed(failure: Failure): void {
    if (failure.status !== CLIENT_LEFT) this.failure = failure.code;
  }

  relayed(counts: { readonly bytesOut: number; readonly bytesIn: number }): void {
    this.bytesOut = counts.bytesOut;
    this.bytesIn = counts.bytesIn;
  }

  /** Time in which the gate waited for somebody else; it is not the gate's own. Milliseconds. */
  waited(ms: number): void {
    this.#waited += ms;
  }

  /** The request leaves now. */
  leaves(): void {
    this.#overhead = performance.now() - this.#started - this.#waited;
  }

  end(): void {
    if (this.#written) return;
    this.#written = true;
    this.#recorder.exchange(this.#record());
  }

  #record(): ExchangeRecord {
    const { destination, target } = this;
    const query = target?.indexOf("?") ?? -1;
    return {
      time: this.#time,
      sandbox: this.sandbox,
      client: this.#client,
      listener: this.#listener,
      protocol: this.protocol,
      visibility: this.visibility,
      method: this.method,
      host: destination?.kind === "name" ? destination.host : destination?.address.text,
      // A lookup has none.
      port: destination?.port || undefined,
      path: query < 0 ? target : target?.slice(0, query),
      verdict: this.verdict,
      reason: this.reason,
      rule: this.rule,
      would: this.would,
      injected: this.injected,
      policy: this.policy,
      status: this.status,
      bytesOut: this.bytesOut,
      bytesIn: this.bytesIn,
      durationMs: performance.now() - this.#started,
      failure: this.failure,
      overheadMs: this.#overhead,
    };
  }
}

const NONE: readonly string[] = [];
