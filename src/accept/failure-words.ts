/** The words and the status for every failure: what went wrong, and whether the same request may succeed later. Pure. */
import type { Failure, FailureCode } from "../model/failure.ts";
import type { Words } from "./denial-words.ts";

interface CodeWords extends Words {
  readonly status: number;
  /** Statuses that a `Failure` may ask for instead. */
  readonly also: readonly number[];
  /** The same request may succeed later. */
  readonly retry: boolean;
}

export interface FailureWords extends Words {
  readonly status: number;
  readonly retry: boolean;
}

const SAME_AGAIN = "Retrying will not help.";

const FAILURES: Readonly<Record<FailureCode, CodeWords>> = {
  E_BAD_REQUEST: {
    status: 400,
    also: [408, 411, 413, 414, 417, 431, 501, 505],
    retry: false,
    message: "The request cannot be understood, so nothing was sent on",
    hint: `${SAME_AGAIN} The client has to send a well-formed HTTP/1.1 request; to the base-URL listener its path begins with the host, as in /api.example.com/v1.`,
  },
  E_BAD_HELLO: {
    status: 400,
    also: [],
    retry: false,
    message: "The TLS handshake cannot be understood, so nothing was sent on",
    hint: `${SAME_AGAIN} The client has to speak TLS 1.2 or later and name the host in the handshake (SNI).`,
  },
  E_RESOLVE: {
    status: 502,
    also: [504],
    retry: false,
    message: "The name {host} cannot be resolved",
    hint: "Policy allows the host, but it has no address. Check its spelling; if it is right, the name servers of the gate have a problem.",
  },
  E_CONNECT: {
    status: 502,
    also: [504],
    retry: true,
    message: "No connection to {host} can be made",
    hint: "Policy allows the host, but it does not answer on this port. It may be down; a later try may succeed.",
  },
  E_UPSTREAM_TLS: {
    status: 502,
    also: [504],
    retry: false,
    message: "The TLS connection to {host} failed or its certificate cannot be trusted",
    hint: `${SAME_AGAIN} Policy allows the host. If it has a private CA, the operator would have to add it to upstream.ca_file.`,
  },
  E_UPSTREAM_PROTOCOL: {
    status: 502,
    also: [],
    retry: false,
    message: "{host} sent something that is not a valid HTTP response",
    hint: `${SAME_AGAIN} Policy allows the host, but its answer cannot be passed on safely.`,
  },
  E_TIMEOUT: {
    status: 504,
    also: [408],
    retry: true,
    message: "{host} did not answer in time",
    hint: "Policy allows the host. It may be slow or overloaded; a later try may succeed.",
  },
  E_HOOK: {
    status: 500,
    also: [502, 503, 504],
    retry: false,
    message: "The operator's policy hook failed, so nothing was sent to {host}",
    hint: `${SAME_AGAIN} The operator has to mend the hook; the gate's log says more.`,
  },
  E_CONFIG: {
    status: 500,
    also: [503],
    retry: false,
    message: "The gate is not configured for this request to {host}",
    hint: `${SAME_AGAIN} The operator has to mend the config; the gate's log says more.`,
  },
  E_INTERNAL: {
    status: 500,
    also: [503],
    retry: false,
    message: "The gate failed on this request to {host}",
    hint: "This is a fault of the gate. The operator finds more in its log and should report it.",
  },
};

/** Said instead where the status tells more than the code. */
const BY_STATUS: ReadonlyMap<number, Words> = new Map([
  [
    408,
    {
      message: "The request did not arrive in time, so nothing was sent on",
      hint: "The client has to send the whole request head, and keep a body moving; a later try may succeed.",
    },
  ],
  [411, unsent("The request does not say how long its body is", "Send Content-Length or chunked coding.")],
  [413, unsent("The request's body is too large", "Send less.")],
  [414, unsent("The request's target is too long", "Move what is long into the body.")],
  [417, unsent("The request's Expect field cannot be met", "Leave Expect out.")],
  [431, unsent("The request's header fields are too large or too many", "Send fewer or shorter fields.")],
  [501, unsent("The request uses something that the gate does not support", "Use plain HTTP/1.1.")],
  [505, unsent("The request's HTTP version is not supported", "Use HTTP/1.1.")],
  [
    503,
    {
      message: "The gate cannot take this request now",
      hint: "It is starting, ending or overloaded; a later try may succeed.",
    },
  ],
  [504, FAILURES.E_TIMEOUT],
]);

/** Statuses of a trouble that may pass by itself. */
const PASSING: ReadonlySet<number> = new Set([408, 503, 504]);

/** The status is the one of `failure` where its code allows that, so that no stray number reaches a client. */
export function failureWords(failure: Failure): FailureWords {
  const ofCode = FAILURES[failure.code];
  const status = failureStatus(failure, ofCode);
  const { message, hint } = BY_STATUS.get(status) ?? ofCode;
  return { status, message, hint, retry: ofCode.retry || PASSING.has(status) };
}

function failureStatus(failure: Failure, ofCode: CodeWords): number {
  const { status } = failure;
  if (status !== undefined && ofCode.also.includes(status)) {
    return status;
  }
  return failure.code === "E_TIMEOUT" && failure.fault === "client" ? 408 : ofCode.status;
}

function unsent(message: string, hint: string): Words {
  return { message: `${message}, so nothing was sent on`, hint: `${SAME_AGAIN} ${hint}` };
}
