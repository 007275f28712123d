/** The head of an HTTP/1 request, from bytes to values, strictly (RFC 9112). Pure. */
import type { Field, Framing } from "../model/exchange.ts";
import type { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { listElements, parseFieldLines } from "./field-lines.ts";
import { type Control, closesAfter, declaredFraming, readControl } from "./framing.ts";
import { protocolFailure } from "./protocol-failure.ts";

/** RFC 9112 section 3.2. Absolute- and authority-form are taken apart by `request-target.ts`. */
export type TargetForm = "origin" | "absolute" | "authority" | "asterisk";

export interface ParsedRequest {
  readonly method: string;
  /** As received; no blank, control or non-ASCII byte is in it. */
  readonly rawTarget: string;
  readonly form: TargetForm;
  readonly minor: 0 | 1;
  readonly fields: readonly Field[];
  /** Never `close`. */
  readonly framing: Framing;
  /** The connection ends after this exchange. */
  readonly close: boolean;
  /** The one Host field: a single `host[:port]`; undefined is possible on HTTP/1.0 alone. */
  readonly host: string | undefined;
  /** The Upgrade field in lower case, elements joined by `,`, where Connection nominates it on HTTP/1.1. */
  readonly upgrade: string | undefined;
  /** A body follows, and the client waits with it for a 100. */
  readonly expectContinue: boolean;
}

const REQUEST_LINE = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP\/1\.[01]\r\n/y;
const OTHER_VERSION = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [\x21-\x7e]+ HTTP\/[0-9]\.[0-9]\r\n/;
/** Length of ` HTTP/1.1` and its CRLF. */
const VERSION_LENGTH = 11;
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//;
/** No blank, comma, `@`, `%` or list: whoever reads this field must find the same one name in it (D10, A15). */
const HOST = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9][0-9]{0,4})?$/;
/** Taking these away at a hop would change what the next one reads (F01, CVE-2021-33197). */
const NEVER_NOMINATED = ["host", "content-length", "transfer-encoding"];

/**
 * `bytes` [0, `end`) is the whole head, its empty line included (`findHeadEnd`). One empty line before it is skipped
 * (RFC 9112 section 2.2). Throws `E_BAD_REQUEST` with 400, 414, 417, 431, 501 or 505.
 * A caller whose buffer outgrew `head_bytes` without an end passes all of it and gets the right failure.
 */
export function parseRequestHead(bytes: Buffer, end: number, limits: Limits): ParsedRequest {
  if (end > limits.head_bytes) {
    throw overlong(bytes, limits);
  }
  const text = bytes.toString("latin1", 0, end);
  const from = text.startsWith("\r\n") ? 2 : 0;
  REQUEST_LINE.lastIndex = from;
  if (!REQUEST_LINE.test(text)) {
    throw unreadableLine(text.slice(from));
  }
  const fieldsFrom = REQUEST_LINE.lastIndex;
  const space = text.indexOf(" ", from);
  const method = text.slice(from, space);
  const rawTarget = text.slice(space + 1, fieldsFrom - VERSION_LENGTH);
  if (rawTarget.length > limits.target_bytes) {
    throw protocolFailure("client", "Target too long", 414);
  }
  const form = formOf(method, rawTarget);
  const minor = text[fieldsFrom - 3] === "1" ? 1 : 0;
  const fields = parseFieldLines(text, fieldsFrom, limits.head_fields, "client");
  const control = readControl(fields);
  const framing = declaredFraming(control, minor, "client");
  refuseContradiction(method, framing, control);
  return {
    method,
    rawTarget,
    form,
    minor,
    fields,
    framing,
    close: closesAfter(control, minor),
    host: oneHost(control, minor),
    upgrade: requestedUpgrade(control, minor),
    expectContinue: waitsForContinue(control, minor, framing),
  };
}

function overlong(bytes: Buffer, limits: Limits): Failure {
  const line = bytes.subarray(0, limits.head_bytes).indexOf("\r\n", 2, "latin1");
  return line < 0
    ? protocolFailure("client", "Target too long", 414)
    : protocolFailure("client", "Head too long", 431);
}

function unreadableLine(text: string): Failure {
  return OTHER_VERSION.test(text)
    ? protocolFailure("client", "HTTP version other than 1.0 and 1.1", 505)
    : protocolFailure("client", "Malformed request line");
}

function formOf(method: string, target: string): TargetForm {
  if (method === "CONNECT") {
    return "authority";
  }
  if (target.startsWith("/")) {
    return "origin";
  }
  if (target === "*" && method === "OPTIONS") {
    return "asterisk";
  }
  if (SCHEME.test(target)) {
    return "absolute";
  }
  throw protocolFailure("client", "Malformed target");
}

function refuseContradiction(method: string, framing: Framing, control: Control): void {
  // RFC 9110 section 9.3.6 gives these no meaning, so a peer may give them one (E17).
  if (method === "CONNECT" && framing.kind !== "none") {
    throw protocolFailure("client", "CONNECT with a body");
  }
  if (control.connection.some((name) => NEVER_NOMINATED.includes(name))) {
    throw protocolFailure("client", "Connection nominates a field that frames or routes");
  }
}

function oneHost(control: Control, minor: 0 | 1): string | undefined {
  const { host, hosts } = control;
  if (hosts === 0 && minor === 0) {
    return undefined;
  }
  if (hosts !== 1 || host === undefined || !HOST.test(host)) {
    throw protocolFailure("client", "Host is not one authority");
  }
  return host;
}

/** RFC 9110 section 7.8: ignored on HTTP/1.0, and without the nomination. */
function requestedUpgrade(control: Control, minor: 0 | 1): string | undefined {
  if (control.upgrade === undefined || minor === 0 || !control.connection.includes("upgrade")) {
    return undefined;
  }
  return listElements(control.upgrade).join(",");
}

/** RFC 9110 section 10.1.1. */
function waitsForContinue(control: Control, minor: 0 | 1, framing: Framing): boolean {
  if (control.expect === undefined) {
    return false;
  }
  if (control.expect.toLowerCase() !== "100-continue") {
    throw protocolFailure("client", "Unknown expectation", 417);
  }
  return minor === 1 && hasBody(framing);
}

function hasBody(framing: Framing): boolean {
  return framing.kind === "length" ? framing.length > 0 : framing.kind !== "none";
}
