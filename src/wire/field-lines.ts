/** Field lines from text to values (RFC 9112 section 5). Pure. */
import type { Field } from "../model/exchange.ts";
import { protocolFailure, type Side } from "./protocol-failure.ts";

/**
 * One pass over a whole section: no blank before the colon, no obs-fold, no bare CR or LF, no control but HTAB.
 * Each class excludes what may follow it, so a match never backtracks into another reading.
 */
const SECTION = /(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n/y;
const HTAB = 9;
const SP = 32;

/**
 * A field that was read off the wire: its name, key and value are known to be well-formed, so a writer need not ask
 * again. Anything else that calls itself a field is asked.
 */
export class ReadField implements Field {
  readonly name: string;
  readonly key: string;
  readonly value: string;

  constructor(name: string, key: string, value: string) {
    this.name = name;
    this.key = key;
    this.value = value;
  }
}

/** Reads the field lines in `text` (latin1) from `from` to its end, the empty line included. */
export function parseFieldLines(text: string, from: number, most: number, side: Side): Field[] {
  SECTION.lastIndex = from;
  if (!SECTION.test(text) || SECTION.lastIndex !== text.length) {
    throw protocolFailure(side, "Malformed field line");
  }
  const fields: Field[] = [];
  const end = text.length - 2;
  for (let at = from; at < end; ) {
    if (fields.length === most) {
      throw protocolFailure(side, "Too many field lines", 431);
    }
    const colon = text.indexOf(":", at);
    const eol = text.indexOf("\r", colon);
    const name = text.slice(at, colon);
    fields.push(new ReadField(name, name.toLowerCase(), trimmed(text, colon + 1, eol)));
    at = eol + 2;
  }
  return fields;
}

/** The elements of a comma-separated list, lower case, without blanks and empty elements. */
export function listElements(value: string): string[] {
  return value
    .toLowerCase()
    .split(",")
    .map(trimBlanks)
    .filter((element) => element !== "");
}

export function trimBlanks(text: string): string {
  return trimmed(text, 0, text.length);
}

/** Optional whitespace is SP and HTAB alone; `trim` would take U+00A0, a legal byte of a value, as well. */
function trimmed(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) {
    start += 1;
  }
  while (end > start && isBlank(text.charCodeAt(end - 1))) {
    end -= 1;
  }
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === SP || code === HTAB;
}
