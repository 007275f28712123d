/** The closed sets of metric labels, and the cells of exchanges counted by four of them. Pure. */
import type { Reason } from "../model/decision.ts";
import type { Listener } from "../model/exchange.ts";
import type { FailureCode } from "../model/failure.ts";
import type { ExchangeRecord, Protocol } from "../model/record.ts";
import type { Sample } from "./cells.ts";

export type ReasonLabel = Reason | "";
export type Verdict = ExchangeRecord["verdict"];
/** The failures that are the upstream's doing, or happen on the way to it. */
export type UpstreamCode = Extract<
  FailureCode,
  "E_RESOLVE" | "E_CONNECT" | "E_UPSTREAM_TLS" | "E_UPSTREAM_PROTOCOL" | "E_TIMEOUT"
>;
export type LeafSource = "minted" | "cached" | "refused";

/** Records of positions rather than lists, so that a value added to a type does not compile until it is here. */
const LISTENER: Readonly<Record<Listener, number>> = {
  explicit: 0,
  socks: 1,
  jail: 2,
  gateway: 3,
  reverse: 4,
  dns: 5,
};

const PROTOCOL: Readonly<Record<Protocol, number>> = {
  "http/1.1": 0,
  h2: 1,
  ws: 2,
  grpc: 3,
  "tls-tunnel": 4,
  tcp: 5,
  dns: 6,
};

const VERDICT: Readonly<Record<Verdict, number>> = { allow: 0, deny: 1 };

/** The empty label is an exchange that failed before it was decided. */
const REASON: Readonly<Record<ReasonLabel, number>> = {
  "": 0,
  "rule-allows": 1,
  "no-rule-matched": 2,
  "rule-denies": 3,
  "network-disabled": 4,
  loopback: 5,
  "address-not-public": 6,
  "address-denied": 7,
  "names-disagree": 8,
  "no-name": 9,
  "plaintext-secret": 10,
  "needs-inspection": 11,
  "method-refused": 12,
  "path-ambiguous": 13,
  "identity-unknown": 14,
  "secret-unavailable": 15,
  "placeholder-misplaced": 16,
  "hook-denied": 17,
  "approval-timeout": 18,
  "budget-exceeded": 19,
  "limit-exceeded": 20,
  "cross-site": 21,
};

const UPSTREAM_CODE: Readonly<Record<UpstreamCode, number>> = {
  E_RESOLVE: 0,
  E_CONNECT: 1,
  E_UPSTREAM_TLS: 2,
  E_UPSTREAM_PROTOCOL: 3,
  E_TIMEOUT: 4,
};

export const LISTENERS = keys(LISTENER);
export const PROTOCOLS = keys(PROTOCOL);
export const VERDICTS = keys(VERDICT);
export const REASONS = keys(REASON);
export const UPSTREAM_CODES = keys(UPSTREAM_CODE);
export const LEAF_SOURCES: readonly LeafSource[] = ["minted", "cached", "refused"];
export const DIRECTIONS = ["out", "in"] as const;
export const DNS_TYPES = ["A", "AAAA", "HTTPS", "SVCB", "other"] as const;

/** Shown from the start, at zero: an alert on an increase cannot see a series begin at one. */
const FROM_THE_START: readonly Protocol[] = ["http/1.1", "tls-tunnel"];

/** A type alias, unlike an interface, is a record of strings to prom-client. */
type ExchangeLabels = {
  readonly listener: Listener;
  readonly protocol: Protocol;
  readonly verdict: Verdict;
  readonly reason: ReasonLabel;
};

/** In the order of `cellOf`. */
const EXCHANGE_LABELS: readonly ExchangeLabels[] = LISTENERS.flatMap((listener) =>
  PROTOCOLS.flatMap((protocol) =>
    VERDICTS.flatMap((verdict) => REASONS.map((reason) => ({ listener, protocol, verdict, reason }))),
  ),
);

/** Counts of exchanges by listener, protocol, verdict and reason. */
export interface ExchangeCells {
  count(record: ExchangeRecord): void;
  samples(): Sample[];
}

export function createExchangeCells(): ExchangeCells {
  const cells = new Float64Array(EXCHANGE_LABELS.length);
  return {
    count: (record) => {
      const at = cellOf(record.listener, record.protocol, record.verdict, record.reason ?? "");
      cells[at] = (cells[at] as number) + 1;
    },
    samples: () => exchangeSamples(cells),
  };
}

function exchangeSamples(cells: Float64Array): Sample[] {
  const samples: Sample[] = [];
  for (const [at, labels] of EXCHANGE_LABELS.entries()) {
    const value = cells[at] as number;
    if (value > 0 || isShownAtZero(labels)) {
      samples.push({ labels, value });
    }
  }
  return samples;
}

function isShownAtZero({ listener, protocol, verdict, reason }: ExchangeLabels): boolean {
  return (
    listener === "explicit" &&
    FROM_THE_START.includes(protocol) &&
    (reason === "rule-allows") === (verdict === "allow")
  );
}

function cellOf(listener: Listener, protocol: Protocol, verdict: Verdict, reason: ReasonLabel): number {
  const door = LISTENER[listener] * PROTOCOLS.length + PROTOCOL[protocol];
  return (door * VERDICTS.length + VERDICT[verdict]) * REASONS.length + REASON[reason];
}

/** True for a code that counts against the upstream. */
export function isUpstreamCode(code: FailureCode): code is UpstreamCode {
  return Object.hasOwn(UPSTREAM_CODE, code);
}

function keys<K extends string>(positions: Readonly<Record<K, number>>): readonly K[] {
  return Object.keys(positions) as K[];
}
