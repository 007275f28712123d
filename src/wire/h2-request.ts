/** The head of an HTTP/2 request, strictly, from pairs to values and back (RFC 9113 section 8.3.1, RFC 8441). Pure. */
import type { Field, FieldLines, Framing, RequestHead } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { isToken, unwritable } from "./field-text.ts";
import { declaredFraming, readControl } from "./framing.ts";
import { type Pairs, pushFields, readPairs } from "./h2-fields.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface H2Request {
  /** A WebSocket's is GET, as RFC 8441 section 5 has it: rules judge it like the same request in HTTP/1.1. */
  readonly method: string;
  /** Origin-form or `*`; the authority where `method` is CONNECT. */
  readonly target: string;
  readonly authority: string | undefined;
  readonly host: string | undefined;
  readonly fields: FieldLines;
  readonly framing: Framing;
  /** `:protocol` is `websocket`: after a 2xx the stream is opaque. */
  readonly websocket: boolean;
  readonly expectContinue: boolean;
}

const TARGET = /^[\x21-\x7e]+$/;
const KNOWN = new Set([":method", ":scheme", ":authority", ":path", ":protocol"]);
const NONE: Framing = { kind: "none" };
const UNTIL_END: Framing = { kind: "chunked" };

/** `whole`: END_STREAM came with the head. Throws `E_BAD_REQUEST` with 400, 414, 417 or 431. */
export function readH2Request(pairs: Pairs, whole: boolean, limits: Limits): H2Request {
  const { pseudo, fields } = readPairs(pairs, limits, "client");
  const method = pseudo.get(":method");
  if (method === undefined || !isToken(method) || [...pseudo.keys()].some((name) => !KNOWN.has(name))) {
    throw protocolFailure("client", "Malformed pseudo fields");
  }
  const control = readControl(fields);
  if (control.hosts > 1) throw protocolFailure("client", "Host is not one authority");
  const authority = pseudo.get(":authority");
  if (authority === undefined && control.host === undefined) {
    throw protocolFailure("client", "Request without an authority");
  }
  const websocket = method === "CONNECT" && pseudo.get(":protocol") === "websocket";
  return {
    method: websocket ? "GET" : method,
    target: targetOf(pseudo, method, limits),
    authority,
    host: control.host,
    fields,
    framing: framingOf(fields, whole),
    websocket,
    expectContinue: waits(control.expect, whole),
  };
}

/**
 * Pairs for a request that leaves in HTTP/2: its Host becomes `:authority`, an Upgrade to `websocket` the extended
 * CONNECT. Throws `E_INTERNAL` on what could not leave framed.
 */
export function renderH2Request(head: RequestHead, framing: Framing): string[] {
  const { method, target, fields } = head;
  const host = fields.find(({ key }) => key === "host")?.value;
  if (!isToken(method) || !TARGET.test(target) || host === undefined || framing.kind === "close") {
    throw unwritable("Request cannot be written");
  }
  const pairs = isUpgrade(fields) ? [":method", "CONNECT", ":protocol", "websocket"] : [":method", method];
  pairs.push(":scheme", "https", ":authority", host, ":path", target);
  pushFields(pairs, fields, framing.kind === "length" ? String(framing.length) : undefined);
  return pairs;
}

export function isUpgrade(fields: FieldLines): boolean {
  return fields.some(({ key, value }: Field) => key === "upgrade" && value === "websocket");
}

/** RFC 9113 section 8.2.3: crumbs of a cookie are one field again where the next hop is HTTP/1.1. */
export function joinCookies(fields: FieldLines): FieldLines {
  const cookies = fields.filter(({ key }) => key === "cookie");
  if (cookies.length < 2) return fields;
  const value = cookies.map((cookie) => cookie.value).join("; ");
  const [first] = cookies;
  return fields.flatMap((field) => {
    if (field.key !== "cookie") return [field];
    return field === first ? [{ ...field, value }] : [];
  });
}

function targetOf(pseudo: ReadonlyMap<string, string>, method: string, limits: Limits): string {
  const path = pseudo.get(":path");
  const scheme = pseudo.get(":scheme");
  const extended = pseudo.has(":protocol");
  if (method === "CONNECT" && !extended) {
    if (path !== undefined || scheme !== undefined) {
      throw protocolFailure("client", "CONNECT with a scheme or a path");
    }
    return pseudo.get(":authority") ?? "";
  }
  // D09: what came in through TLS does not claim to be clear text.
  if (scheme !== "https" || (extended && method !== "CONNECT")) {
    throw protocolFailure("client", "Malformed pseudo fields");
  }
  return checkedPath(path ?? "", method, limits);
}

function checkedPath(path: string, method: string, limits: Limits): string {
  if (path.length > limits.target_bytes) throw protocolFailure("client", "Target too long", 414);
  const proper = path.startsWith("/") || (path === "*" && method === "OPTIONS");
  if (!proper || !TARGET.test(path)) throw protocolFailure("client", "Malformed target");
  return path;
}

function framingOf(fields: FieldLines, whole: boolean): Framing {
  const declared = declaredFraming(readControl(fields), 1, "client");
  if (declared.kind === "none") return whole ? NONE : UNTIL_END;
  // nghttp2 resets a stream whose body has another length; this is what can be known before the body.
  if (whole && declared.kind === "length" && declared.length > 0) {
    throw protocolFailure("client", "Request without the body that it declares");
  }
  return declared;
}

function waits(expect: string | undefined, whole: boolean): boolean {
  if (expect === undefined) return false;
  if (expect.toLowerCase() !== "100-continue") throw protocolFailure("client", "Unknown expectation", 417);
  return !whole;
}
