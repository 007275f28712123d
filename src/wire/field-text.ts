/** Field lines from values to text, framing fields set anew. What is written here, a parser reads alike. Pure. */
import type { Field, FieldLines, Framing } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import { ReadField } from "./field-lines.ts";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const LENGTH = /^[0-9]{1,15}$/;
/** Beyond latin1 too: writing U+010A as latin1 puts its low byte, LF, on the wire. */
const UNSAFE_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
/** About one hop alone: the writer sets its own. Upgrade stays where `transform/` left one. */
const OF_THE_HOP = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "te"]);

/** Field lines as text, each checked, without the empty line. Throws `E_INTERNAL`. */
export function renderFieldLines(fields: FieldLines): string {
  let text = "";
  for (const field of fields) {
    text += lineText(field);
  }
  return text;
}

/**
 * The same, with the fields that frame: those given are written only where they say what `framing` says. Where
 * `keepsLength`, framing is `none` and a Content-Length tells of a body that is not sent.
 */
export function renderFramedFields(fields: FieldLines, framing: Framing, keepsLength: boolean): string {
  const length = framing.kind === "length" ? lengthText(framing.length) : undefined;
  let text = "";
  let kept = false;
  for (const field of fields) {
    const tells = field.key === "content-length";
    if (tells ? kept || !tellsLength(field, length, keepsLength) : OF_THE_HOP.has(field.key)) continue;
    text += lineText(field);
    kept ||= tells;
  }
  if (length !== undefined && !kept) {
    text += `Content-Length: ${length}\r\n`;
  }
  return framing.kind === "chunked" ? `${text}Transfer-Encoding: chunked\r\n` : text;
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Nothing in it could end a line, in latin1. */
export function isSafeValue(text: string): boolean {
  return !UNSAFE_VALUE.test(text);
}

export function hasUpgrade(fields: FieldLines): boolean {
  return fields.some((field) => field.key === "upgrade");
}

/** Our own mistake: what the gate was about to write would not have been one well-framed message. */
export function unwritable(message: string): Failure {
  return new Failure("E_INTERNAL", "gate", message);
}

function tellsLength(field: Field, length: string | undefined, keepsLength: boolean): boolean {
  return field.key === "content-length" && (keepsLength ? LENGTH.test(field.value) : field.value === length);
}

function lengthText(length: number): string {
  if (!Number.isSafeInteger(length) || length < 0) {
    throw unwritable("Length is no length");
  }
  return String(length);
}

/** The key is compared too: a field that calls itself something else would slip past every check by key. */
function lineText(field: Field): string {
  const { name, key, value } = field;
  if (field instanceof ReadField) return `${name}: ${value}\r\n`;
  if (!isToken(name) || !isSafeValue(value) || (name !== key && name.toLowerCase() !== key)) {
    throw unwritable("Field line cannot be written");
  }
  return `${name}: ${value}\r\n`;
}
