/** The record of one exchange while it is still under way; it is written exactly once. */
import type { Decision, Denial, Reason } from "../model/decision.ts";
import type { Client, Destination, Listener, Visibility } from "../model/exchange.ts";
import { CLIENT_LEFT, type Failure, type FailureCode, type Fault } from "../model/failure.ts";
import type { ExchangeRecord, Protocol, Recorder } from "../model/record.ts";

/** It is the record itself, so that nothing is copied when the exchange is over. */
export class ExchangeDraft implements ExchangeRecord {
  readonly #recorder: Recorder;
  readonly #started = performance.now();
  #written = false;
  #waited = 0;
  #late = NONE;
  readonly time = Date.now();
  readonly listener: Listener;
  readonly client: string;
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
  scrubbed = false;
  policy = "";
  status: number | undefined = undefined;
  bytesOut = 0;
  bytesIn = 0;
  durationMs = 0;
  failure: FailureCode | undefined = undefined;
  fault: Fault | undefined = undefined;
  /** Told of the record once it is written. */
  whenWritten: ((record: ExchangeRecord) => void) | undefined = undefined;
  overheadMs: number | undefined = undefined;

  constructor(recorder: Recorder, door: { readonly listener: Listener; readonly address: string }) {
    this.#recorder = recorder;
    this.listener = door.listener;
    this.client = door.address;
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
  }

  failed(failure: Failure): void {
    // A client that went away is no failure of anybody's; its record has neither status nor code.
    if (failure.status !== CLIENT_LEFT) this.failure = failure.code;
    this.fault = failure.fault;
    if (failure.code === "E_INTERNAL" && failure.fault === "gate") {
      this.#recorder.broke(failure.cause ?? failure);
    }
  }

  relayed(counts: { readonly bytesOut: number; readonly bytesIn: number }): void {
    this.bytesOut = counts.bytesOut;
    this.bytesIn = counts.bytesIn;
  }

  /** Time in which the gate waited for somebody else; it is not the gate's own. Milliseconds. */
  waited(ms: number): void {
    this.#waited += ms;
  }

  /** The request leaves now, with these fields of ours: what becomes of it later, they were on the wire. */
  leaves(injected: readonly string[] = NONE): void {
    this.injected = this.#late.length === 0 ? injected : [...injected, ...this.#late];
    this.overheadMs = performance.now() - this.#started - this.#waited;
  }

  /** Of what was put into the body while it passes, which may be before or after `leaves`. */
  alsoInjected(name: string): void {
    if (this.#late.includes(name)) return;
    this.#late = [...this.#late, name];
    this.injected = [...this.injected, name];
  }

  end(): void {
    if (this.#written) return;
    this.#written = true;
    this.durationMs = performance.now() - this.#started;
    this.#recorder.exchange(this);
    this.whenWritten?.(this);
  }

  get host(): string | undefined {
    const { destination } = this;
    return destination?.kind === "name" ? destination.host : destination?.address.text;
  }

  /** A lookup has none. */
  get port(): number | undefined {
    return this.destination?.port || undefined;
  }

  get path(): string | undefined {
    const query = this.target?.indexOf("?") ?? -1;
    return query < 0 ? this.target : this.target?.slice(0, query);
  }
}

const NONE: readonly string[] = [];
