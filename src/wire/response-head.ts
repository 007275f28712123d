/** The head of an HTTP/1 response, from bytes to values, strictly (RFC 9112). Pure. */
import type { Field, Framing } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { parseFieldLines } from "./field-lines.ts";
import { CLOSE, type Control, closesAfter, declaredFraming, NONE, readControl } from "./framing.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface ParsedResponse {
  /** 100 to 599. */
  readonly status: number;
  readonly phrase: string;
  readonly minor: 0 | 1;
  readonly fields: readonly Field[];
  readonly framing: Framing;
  /** The connection cannot carry another exchange. */
  readonly close: boolean;
  /** Seconds, from `Keep-Alive: timeout=N`. */
  readonly keepAliveTimeout: number | undefined;
}

/** The blank after the status is missing in the wild where the phrase is; nothing can be mistaken for it. */
const STATUS_LINE = /HTTP\/1\.[01] [1-5][0-9][0-9](?: [\t\x20-\x7e\x80-\xff]*)?\r\n/y;
const MINOR_AT = 7;
const STATUS_AT = 9;
const PHRASE_AT = 13;
const KEEP_ALIVE_TIMEOUT = /(?:^|[,;\t ])timeout=([0-9]{1,9})(?:$|[,;\t ])/i;

/**
 * `bytes` [0, `end`) is the whole head, its empty line included (`findHeadEnd`). `requestMethod` is that of the
 * request it answers. Throws `E_UPSTREAM_PROTOCOL`.
 */
export function parseResponseHead(
  bytes: Buffer,
  end: number,
  requestMethod: string,
  limits: Limits,
): ParsedResponse {
  if (end > limits.head_bytes) {
    throw protocolFailure("upstream", "Head too long");
  }
  const text = bytes.toString("latin1", 0, end);
  STATUS_LINE.lastIndex = 0;
  if (!STATUS_LINE.test(text)) {
    throw protocolFailure("upstream", "Malformed status line");
  }
  const fieldsFrom = STATUS_LINE.lastIndex;
  const minor = text[MINOR_AT] === "1" ? 1 : 0;
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3));
  const fields = parseFieldLines(text, fieldsFrom, limits.head_fields, "upstream");
  const control = readControl(fields);
  const declared = declaredFraming(control, minor, "upstream");
  const framing = responseFraming(status, requestMethod, declared);
  return {
    status,
    phrase: text.slice(PHRASE_AT, fieldsFrom - 2),
    minor,
    fields,
    framing,
    close: framing.kind === "close" || closesAfter(control, minor) || mayBeFollowed(status, declared),
    keepAliveTimeout: keepAliveTimeout(control),
  };
}

/** RFC 9112 section 6.3. */
function responseFraming(status: number, requestMethod: string, declared: Framing): Framing {
  if (status < 200) {
    if (declared.kind === "chunked" || (declared.kind === "length" && declared.length > 0)) {
      throw protocolFailure("upstream", "Interim response with a body");
    }
    return NONE;
  }
  const bodiless = requestMethod === "HEAD" || status === 204 || status === 304;
  if (bodiless || (requestMethod === "CONNECT" && status < 300)) {
    return NONE;
  }
  return declared.kind === "none" ? CLOSE : declared;
}

/** A 204 that announces a body has none, yet its sender may write one: nothing after it is to be believed. */
function mayBeFollowed(status: number, declared: Framing): boolean {
  return (
    status === 204 && (declared.kind === "chunked" || (declared.kind === "length" && declared.length > 0))
  );
}

function keepAliveTimeout(control: Control): number | undefined {
  if (control.keepAlive === undefined) {
    return undefined;
  }
  const seconds = KEEP_ALIVE_TIMEOUT.exec(control.keepAlive)?.[1];
  return seconds === undefined ? undefined : Number(seconds);
}
