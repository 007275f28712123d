/** Every failure the gate can name. Denials are not failures; see `decision.ts`. */

/** On whose side it went wrong. */
export type Fault = "client" | "upstream" | "operator" | "gate";

/** Closed: records, metrics and `x-sallyport-failure` carry it, and docs/refusals.md lists it. */
export type FailureCode =
  | "E_BAD_REQUEST"
  | "E_BAD_HELLO"
  | "E_RESOLVE"
  | "E_CONNECT"
  | "E_UPSTREAM_TLS"
  | "E_UPSTREAM_PROTOCOL"
  | "E_TIMEOUT"
  | "E_HOOK"
  | "E_CONFIG"
  | "E_INTERNAL";

export interface FailureOptions extends ErrorOptions {
  /** The HTTP status that says it best, where the code alone does not (400, 413, 414, 431, 505…). */
  readonly status?: number;
  /** The HTTP/2 error code of a stream that the peer reset; it goes on to the other side. */
  readonly reset?: number;
}

/** The one error class. `code` is for machines, `message` for people; neither may carry a secret. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly code: FailureCode;
  readonly fault: Fault;
  readonly status: number | undefined;
  readonly reset: number | undefined;

  constructor(code: FailureCode, fault: Fault, message: string, options?: FailureOptions) {
    super(message, options);
    this.code = code;
    this.fault = fault;
    this.status = options?.status;
    this.reset = options?.reset;
  }
}

/** A status that is never sent: nobody is there any more to read an answer, and nothing went wrong here. */
export const CLIENT_LEFT = 499;

export function clientLeft(): Failure {
  return new Failure("E_BAD_REQUEST", "client", "The client went away", { status: CLIENT_LEFT });
}

/** What is under way was ended by the operator: nothing broke. */
export function cutOff(): Failure {
  return new Failure("E_INTERNAL", "operator", "Cut by a change of policy or a stop");
}

/** What was thrown, if it is a failure; anything else is a fault of ours, and `message` says in what. */
export function asFailure(error: unknown, message = "Something broke in the gate"): Failure {
  return error instanceof Failure ? error : new Failure("E_INTERNAL", "gate", message, { cause: error });
}
