/** What a client is told when it is refused or an exchange fails: one table, so that nothing is answered in two ways. Pure. */
import type { Denial, Reason } from "../model/decision.ts";
import type { Field, FieldLines, Listener } from "../model/exchange.ts";
import type { Failure, FailureCode } from "../model/failure.ts";

/** What the client asked for, as far as it is known. */
export interface About {
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** This answers a CONNECT, of whose refusal most clients show the reason phrase alone. */
  readonly connect: boolean;
  /** By which way it came: what would help differs. */
  readonly listener?: Listener;
}

/** What an exchange was about, as its record has it. */
export function aboutOf({
  host,
  port,
  method,
  listener,
}: {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly method: string | undefined;
  readonly listener: Listener;
}): About {
  return { host, port, connect: method === "CONNECT", listener };
}

/** A whole response; the caller adds its framing and leaves the body out where the request was HEAD. */
export interface Answer {
  readonly status: number;
  readonly phrase: string;
  readonly fields: FieldLines;
  /** JSON, printable ASCII, at most 4 KiB. */
  readonly body: Buffer;
}

/** `message` says what was refused and why, `hint` what would change it. `{host}` is replaced. */
interface Explanation {
  readonly message: string;
  readonly hint: string;
}

interface FailureExplanation extends Explanation {
  readonly status: number;
  /** Statuses that a `Failure` may ask for instead. */
  readonly also: readonly number[];
  /** The same request may succeed later. */
  readonly retry: boolean;
}

const SAME_AGAIN = "Retrying will not help.";

/** Every reason, so that one without words does not compile. No address, no rule text, no secret: see G13 and I22. */
const DENIALS: Readonly<Record<Reason, Explanation>> = {
  "rule-allows": {
    message: "Blocked by sandbox policy: {host} was refused although a rule allows it",
    hint: `${SAME_AGAIN} This is a fault of the gate: the operator should report it.`,
  },
  "no-rule-matched": {
    message: "Blocked by sandbox policy: no rule allows this request to {host}",
    hint: `${SAME_AGAIN} The operator would have to add the host, or this port, method or path of it, to network.allowlist.`,
  },
  "rule-denies": {
    message: "Blocked by sandbox policy: a rule forbids {host}",
    hint: `${SAME_AGAIN} The operator would have to take the host off network.denylist.`,
  },
  "network-disabled": {
    message: "Blocked by sandbox policy: this sandbox has no network, so {host} cannot be reached",
    hint: `${SAME_AGAIN} The operator would have to give the sandbox a network with an allowlist.`,
  },
  loopback: {
    message: "Blocked by sandbox policy: {host} is the gate's own machine",
    hint: `${SAME_AGAIN} No setting opens it. A service inside the sandbox is reached without the proxy: set NO_PROXY=localhost,127.0.0.1.`,
  },
  "address-not-public": {
    message: "Blocked by sandbox policy: {host} is not at a public address",
    hint: `${SAME_AGAIN} If it is an internal service, the operator would have to name it by an exact rule and list its range in upstream.allow_ranges.`,
  },
  "address-denied": {
    message: "Blocked by sandbox policy: the address of {host} is in a refused range",
    hint: `${SAME_AGAIN} The operator would have to change upstream.deny_ranges.`,
  },
  "names-disagree": {
    message: "Blocked by sandbox policy: the connection was made for another name than {host}",
    hint: `${SAME_AGAIN} The names in CONNECT, in the TLS handshake and in Host must be the same: use a connection of its own for each host.`,
  },
  "no-name": {
    message: "Blocked by sandbox policy: the connection does not say which host it is for",
    hint: `${SAME_AGAIN} Address the host by name, not by a bare address, and send the name in the TLS handshake (SNI).`,
  },
  "plaintext-secret": {
    message: "Blocked by sandbox policy: a secret is added for {host}, and not over unencrypted HTTP",
    hint: `${SAME_AGAIN} Use https:// instead of http://.`,
  },
  "needs-inspection": {
    message: "Blocked by sandbox policy: what was sent to {host} is no TLS that the gate can check",
    hint: `${SAME_AGAIN} Use TLS with the host's name in the handshake, or let the operator allow the port with protocol: tcp.`,
  },
  "method-refused": {
    message: "Blocked by sandbox policy: the method, or a field that overrides it, is refused for {host}",
    hint: `${SAME_AGAIN} TRACE and method or URL override fields are refused where rules depend on the request; leave them out.`,
  },
  "path-ambiguous": {
    message:
      "Blocked by sandbox policy: the path can be read in more than one way, so no rule for {host} can be trusted with it",
    hint: `${SAME_AGAIN} Send the path without dot segments, doubled slashes, backslashes, semicolons and encoded separators.`,
  },
  "identity-unknown": {
    message: "Blocked by sandbox policy: the gate does not know this sandbox",
    hint: "Retrying without credentials will not help. Send the sandbox's id and token in Proxy-Authorization (http://ID:TOKEN@PROXY in HTTPS_PROXY), or before the host of a base URL (http://LISTENER/~ID:TOKEN/HOST), from the sandbox that they belong to.",
  },
  "secret-unavailable": {
    message:
      "Blocked by sandbox policy: the secret for {host} is not available, and nothing is sent without it",
    hint: "Retrying will not help until the operator provides the secret; /readyz of the gate names what is missing.",
  },
  "placeholder-misplaced": {
    message: "Blocked by sandbox policy: a credential placeholder was sent where it is not replaced",
    hint: `${SAME_AGAIN} Send the placeholder only to the hosts, and only in the place, that the credential is meant for.`,
  },
  "hook-denied": {
    message: "Blocked by sandbox policy: the operator's policy hook refused this request to {host}",
    hint: `${SAME_AGAIN} The operator's hook decides; ask the operator.`,
  },
  "approval-timeout": {
    message: "Blocked by sandbox policy: nobody approved this request to {host} in time",
    hint: "Retrying at once will not help. Ask the operator to be there to approve it.",
  },
  "budget-exceeded": {
    message: "Blocked by sandbox policy: the budget for {host} is used up",
    hint: "Retrying at once will not help. The operator would have to raise the budget, or it renews with time.",
  },
  "limit-exceeded": {
    message: "Blocked by sandbox policy: this request to {host} exceeds a limit of the gate",
    hint: "Retrying at once will not help. Use fewer connections or smaller messages, or let the operator raise the limit.",
  },
  "cross-site": {
    message:
      "Blocked by sandbox policy: the request to {host} comes from a page of another site, or is addressed to another name than the listener's",
    hint: `${SAME_AGAIN} The base-URL listener serves programs, not web pages: address it as localhost or by its own address, without an Origin of another site.`,
  },
};

/** Where nobody was told of a proxy, its variables are no remedy. */
const UNTOLD_LOOPBACK = `${SAME_AGAIN} No setting opens it. A service inside the sandbox is reached there by its own loopback address, on a port that the gate does not listen on: not 53, 80 or 443, nor one that a rule names.`;

const FAILURES: Readonly<Record<FailureCode, FailureExplanation>> = {
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
const BY_STATUS: ReadonlyMap<number, Explanation> = new Map([
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

const PHRASES: ReadonlyMap<number, string> = new Map([
  [400, "Bad Request"],
  [403, "Forbidden"],
  [407, "Proxy Authentication Required"],
  [408, "Request Timeout"],
  [411, "Length Required"],
  [413, "Content Too Large"],
  [414, "URI Too Long"],
  [417, "Expectation Failed"],
  [421, "Misdirected Request"],
  [431, "Request Header Fields Too Large"],
  [500, "Internal Server Error"],
  [501, "Not Implemented"],
  [502, "Bad Gateway"],
  [503, "Service Unavailable"],
  [504, "Gateway Timeout"],
  [505, "HTTP Version Not Supported"],
]);

/** Statuses of a trouble that may pass by itself. */
const PASSING: ReadonlySet<number> = new Set([408, 503, 504]);

/** Longest name or rule shown. */
const SHOWN_BYTES = 255;

const CHALLENGE: Field = field("Proxy-Authenticate", 'Basic realm="Sallyport"');

/** A denial in HTTP: 403, or 421 where names disagree, or 407 to a client without identity. */
export function refusalOf(denial: Denial, about: About): Answer {
  const { reason } = denial;
  const status = statusOf(reason);
  const { message } = DENIALS[reason];
  const error = {
    verdict: "deny",
    reason,
    host: about.host === undefined ? null : shown(about.host),
    port: about.port ?? null,
    rule: denial.rule === undefined ? null : shown(denial.rule),
    message: filled(message, about),
    ...(denial.detail === undefined ? {} : { detail: spoken(denial.detail) }),
    hint: hintOf(reason, about),
    retry: false,
  };
  const fields = [...common(), field("X-Sallyport-Reason", reason)];
  return {
    status,
    phrase: about.connect && status !== 407 ? `Blocked (${reason})` : phraseOf(status),
    fields: status === 407 ? [CHALLENGE, ...fields] : fields,
    body: bodyOf(error),
  };
}

/**
 * A failure in HTTP. The status is the one of `failure` where its code allows that, so that no stray number
 * reaches a client; of its message, which may hold an address, nothing is shown.
 */
export function answerFailure(failure: Failure, about: About): Answer {
  const explanation = FAILURES[failure.code];
  const status = failureStatus(failure, explanation);
  const { message, hint } = BY_STATUS.get(status) ?? explanation;
  const error = {
    failure: failure.code,
    host: about.host === undefined ? null : shown(about.host),
    port: about.port ?? null,
    message: filled(message, about),
    hint,
    retry: explanation.retry || PASSING.has(status),
  };
  return {
    status,
    phrase: about.connect ? `${phraseOf(status)} (${failure.code})` : phraseOf(status),
    fields: [...common(), field("X-Sallyport-Failure", failure.code)],
    body: bodyOf(error),
  };
}

function hintOf(reason: Reason, { listener }: About): string {
  const untold = listener === "jail" || listener === "gateway";
  return untold && reason === "loopback" ? UNTOLD_LOOPBACK : DENIALS[reason].hint;
}

function statusOf(reason: Reason): number {
  if (reason === "names-disagree") {
    return 421;
  }
  return reason === "identity-unknown" ? 407 : 403;
}

function failureStatus(failure: Failure, explanation: FailureExplanation): number {
  const { status } = failure;
  if (status !== undefined && explanation.also.includes(status)) {
    return status;
  }
  return failure.code === "E_TIMEOUT" && failure.fault === "client" ? 408 : explanation.status;
}

function unsent(message: string, hint: string): Explanation {
  return { message: `${message}, so nothing was sent on`, hint: `${SAME_AGAIN} ${hint}` };
}

function common(): Field[] {
  return [field("Content-Type", "application/json"), field("Cache-Control", "no-store")];
}

function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

function phraseOf(status: number): string {
  return PHRASES.get(status) as string; // Every status of the tables above is there; a test asks for each.
}

function filled(message: string, about: About): string {
  // A function: `$&` and its kin in a client's string would be patterns.
  return message.replace("{host}", () => (about.host === undefined ? "the host" : shown(about.host)));
}

/** A client prints this once it has decoded the JSON, so escapes would not protect a terminal: such characters go. */
function shown(text: string): string {
  const safe = text.slice(0, SHOWN_BYTES).replace(/[^!-~]/g, "?");
  return text.length > SHOWN_BYTES ? `${safe}...` : safe;
}

/** As `shown`, for a sentence. */
function spoken(text: string): string {
  const safe = text.slice(0, SHOWN_BYTES).replace(/[^ -~]/g, "?");
  return text.length > SHOWN_BYTES ? `${safe}...` : safe;
}

function bodyOf(error: object): Buffer {
  return Buffer.from(`${JSON.stringify({ error })}\n`, "latin1");
}
