/** Field pairs of an HTTP/2 frame, to field lines and back (RFC 9113 section 8.2). Pure. */
import type { Field, FieldLines } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { isSafeValue, isToken, unwritable } from "./field-text.ts";
import { protocolFailure, type Side } from "./protocol-failure.ts";
import { isTrailer } from "./trailers.ts";

/** Names and values in turn, pseudo fields first, as `node:http2` gives and takes them. */
export type Pairs = readonly string[];

export interface PseudoAndFields {
  readonly pseudo: ReadonlyMap<string, string>;
  readonly fields: readonly Field[];
}

/** One per field line, as in the counting rule of SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113 section 6.5.2). */
const LINE_OVERHEAD = 32;
const UPPER_CASE = /[A-Z]/;
/** About one hop alone, so without meaning here: RFC 9113 section 8.2.2 calls a message with one malformed. */
const CONNECTION_SPECIFIC = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** Throws 431 past `head_bytes` or `head_fields`, 400 (or the upstream's failure) on what is malformed. */
export function readPairs(pairs: Pairs, limits: Limits, side: Side): PseudoAndFields {
  const pseudo = new Map<string, string>();
  const fields: Field[] = [];
  let size = 0;
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const name = String(pairs[at]);
    const value = String(pairs[at + 1]);
    size += name.length + value.length;
    if (name.startsWith(":")) {
      if (fields.length > 0 || pseudo.has(name)) throw protocolFailure(side, "Misplaced pseudo field");
      pseudo.set(name, value);
    } else fields.push(readField(name, value, side));
  }
  if (fields.length > limits.head_fields) throw protocolFailure(side, "Too many field lines", 431);
  if (size > limits.head_bytes) throw protocolFailure(side, "Head too long", 431);
  return { pseudo, fields };
}

/** What followed a body. Pseudo fields have no place there. */
export function readTrailers(pairs: Pairs, limits: Limits, side: Side): FieldLines {
  const { pseudo, fields } = readPairs(pairs, { ...limits, head_bytes: limits.trailer_bytes }, side);
  if (pseudo.size > 0) throw protocolFailure(side, "Pseudo field in trailers");
  return fields;
}

/** As the HPACK encoder counts: what to announce so that nothing within our own limits is refused unseen. */
export function headerListSize({ head_bytes, head_fields }: Limits): number {
  return head_bytes + head_fields * LINE_OVERHEAD;
}

/**
 * More lines than a list of that size can hold: its size alone is what ends one below us, where nobody would hear of
 * it, and too many lines within it come up to be refused in words. The memory for a head is the same.
 */
export function headerListLines(limits: Limits): number {
  return Math.floor(headerListSize(limits) / (LINE_OVERHEAD + 1)) + 1;
}

/** `length` is the Content-Length that the framing asks for, whatever the fields say; what concerns one hop is left out. */
export function pushFields(pairs: string[], fields: FieldLines, length: string | undefined): void {
  let owed = length;
  for (const field of fields) {
    const { key, value } = field;
    if (key === "content-length") {
      if (owed !== undefined) pairs.push(key, owed);
      owed = undefined;
    } else if (key !== "host" && !CONNECTION_SPECIFIC.has(key)) {
      checkWritable(field);
      pairs.push(key, value);
    }
  }
  if (owed !== undefined) pairs.push("content-length", owed);
}

/** For `sendTrailers`: a value for a name that occurs once, else a list. */
export function trailersOf(fields: FieldLines): Record<string, string | string[]> {
  const trailers: Record<string, string | string[]> = Object.create(null);
  for (const field of fields) {
    if (!isTrailer(field) || CONNECTION_SPECIFIC.has(field.key)) continue;
    checkWritable(field);
    const before = trailers[field.key];
    if (before === undefined) trailers[field.key] = field.value;
    else trailers[field.key] = typeof before === "string" ? [before, field.value] : [...before, field.value];
  }
  return trailers;
}

function readField(name: string, value: string, side: Side): Field {
  const proper = isToken(name) && !UPPER_CASE.test(name) && isSafeValue(value);
  if (!proper || CONNECTION_SPECIFIC.has(name) || (name === "te" && value.toLowerCase() !== "trailers")) {
    throw protocolFailure(side, "Field that has no place in HTTP/2");
  }
  return { name, key: name, value };
}

function checkWritable({ name, key, value }: Field): void {
  if (!isToken(name) || !isSafeValue(value) || name.toLowerCase() !== key) {
    throw unwritable("Field line cannot be written");
  }
}
