/** What `decide/` answers, and the two proofs that `forward/` will not act without. */
import type { Client, Destination, Hostname, IpAddress, Scheme } from "./exchange.ts";
import type { SigningSource } from "./signing.ts";

/** Why a decision came out as it did. Closed: metrics are labelled by it and docs/refusals.md lists it. */
export type Reason =
  | "rule-allows"
  | "no-rule-matched"
  | "rule-denies"
  | "network-disabled"
  | "loopback"
  | "address-not-public"
  | "address-denied"
  | "names-disagree"
  | "no-name"
  | "plaintext-secret"
  | "needs-inspection"
  | "method-refused"
  | "path-ambiguous"
  | "identity-unknown"
  | "secret-unavailable"
  | "placeholder-misplaced"
  | "hook-denied"
  | "approval-timeout"
  | "budget-exceeded"
  | "limit-exceeded"
  | "cross-site";

/** A value, never an exception: a denial is an ordinary outcome. */
export type Decision = Allowance | Denial;

export interface Allowance {
  readonly verdict: "allow";
  /** `rule-allows`, or in evaluate_only the reason that would have denied. */
  readonly reason: Reason;
  /** Present in evaluate_only alone, where policy would have denied. */
  readonly would: "deny" | undefined;
  /** Present where a person has to approve it first. */
  readonly approve?: true;
  readonly permit: Permit;
}

export interface Denial {
  readonly verdict: "deny";
  readonly reason: Reason;
  /** The rule that denied, or whose condition failed; undefined where none is concerned. */
  readonly rule: string | undefined;
  /** What whoever refused said to the client: printable text of the operator's hook. */
  readonly detail?: string;
}

export function deny(reason: Reason, rule?: string): Denial {
  return { verdict: "deny", reason, rule };
}

/** What to do with a connection before anything inside it has been seen. */
export type ConnectionDecision =
  | Denial
  /** Look inside and decide each request. `permit` injects nothing: it is good for asking what the upstream speaks. */
  | { readonly verdict: "inspect"; readonly permit: Permit }
  /** Relay unseen. `opaque`: a tcp rule, so no SNI is asked for; a visible one must still agree. */
  | {
      readonly verdict: "tunnel";
      readonly opaque: boolean;
      /** False under `intercept: never`: a hello with ECH is then refused rather than inspected. */
      readonly mayInspect: boolean;
      readonly allowance: Allowance;
    };

export type AddressDecision = { readonly verdict: "allow"; readonly dialable: Dialable } | Denial;

export type HandOverDecision = { readonly verdict: "allow"; readonly handed: HandedOver } | Denial;

declare const permitBrand: unique symbol;

/** Proof that this exchange was allowed. Made by `decide/proofs.ts` alone. */
export interface Permit {
  readonly [permitBrand]: true;
  readonly client: Client;
  readonly destination: Destination;
  readonly scheme: Scheme;
  /** The rule's id; undefined only in evaluate_only where none matched. */
  readonly rule: string | undefined;
  readonly injections: readonly Injection[];
  /** False: the answer is not searched for what was injected. */
  readonly scrub?: false;
  /** Id of the client certificate that the upstream is shown. */
  readonly certificate?: string;
  /** Whether `upstream.allow_ranges` applies: an exact name, a literal, or an entry with `private: true`. */
  readonly mayReachPrivate: boolean;
}

declare const dialableBrand: unique symbol;

/** Proof that this very address was checked for this permit. Made by `decide/proofs.ts` alone. */
export interface Dialable {
  readonly [dialableBrand]: true;
  readonly address: IpAddress;
  readonly port: number;
}

declare const handedBrand: unique symbol;

/**
 * Proof that this very name may be given to a parent proxy that resolves it, its addresses unseen. Made by
 * `decide/proofs.ts` alone.
 */
export interface HandedOver {
  readonly [handedBrand]: true;
  readonly host: Hostname;
  readonly port: number;
}

/** One header the gate adds on the client's behalf. Names a secret; never holds one. */
export interface Injection {
  /** As the operator wrote it: this spelling goes on the wire. */
  readonly field: string;
  /** Lower case. */
  readonly key: string;
  /** Key of a template in `secrets/`, such as `network.allowlist[0].transform.Authorization`. */
  readonly secret: string;
  /** Present: the value is made of the whole request once it is ready, and the secret itself is never sent. */
  readonly signing?: SigningSource;
}
