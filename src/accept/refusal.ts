/** What a client is told when it is refused or an exchange fails: one place, so that nothing is answered in two ways. Pure. */
import type { Denial, Reason } from "../model/decision.ts";
import type { Field, FieldLines, Listener } from "../model/exchange.ts";
import type { Failure } from "../model/failure.ts";
import { denialWords } from "./denial-words.ts";
import { failureWords } from "./failure-words.ts";

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

/** Longest name or rule shown. */
const SHOWN_BYTES = 255;

const CHALLENGE: Field = field("Proxy-Authenticate", 'Basic realm="Sallyport"');

/** A denial in HTTP: 403, or 421 where names disagree, or 407 to a client without identity. */
export function refusalOf(denial: Denial, about: About): Answer {
  const { reason } = denial;
  const status = statusOf(reason);
  const { message, hint } = denialWords(reason, about.listener);
  const error = {
    verdict: "deny",
    reason,
    host: about.host === undefined ? null : shown(about.host),
    port: about.port ?? null,
    rule: denial.rule === undefined ? null : shown(denial.rule),
    message: filled(message, about),
    ...(denial.detail === undefined ? {} : { detail: spoken(denial.detail) }),
    hint,
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

/** A failure in HTTP. Of its message, which may hold an address, nothing is shown. */
export function answerFailure(failure: Failure, about: About): Answer {
  const { status, message, hint, retry } = failureWords(failure);
  const error = {
    failure: failure.code,
    host: about.host === undefined ? null : shown(about.host),
    port: about.port ?? null,
    message: filled(message, about),
    hint,
    retry,
  };
  return {
    status,
    phrase: about.connect ? `${phraseOf(status)} (${failure.code})` : phraseOf(status),
    fields: [...common(), field("X-Sallyport-Failure", failure.code)],
    body: bodyOf(error),
  };
}

function statusOf(reason: Reason): number {
  if (reason === "names-disagree") {
    return 421;
  }
  return reason === "identity-unknown" ? 407 : 403;
}

function common(): Field[] {
  return [field("Content-Type", "application/json"), field("Cache-Control", "no-store")];
}

function field(name: string, value: string): Field {
  return { name, key: name.toLowerCase(), value };
}

function phraseOf(status: number): string {
  return PHRASES.get(status) as string; // Every status of the tables of words is there; a test asks for each.
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
