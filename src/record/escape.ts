/** Turns any text into printable ASCII inside double quotes, so that neither a line nor a terminal can be broken. Pure. */

/** Bytes of one rendered field, quotes aside; longer ones are cut and end in an escaped ellipsis. */
export const FIELD_BYTES = 1_024;

/** Everything a JSON string may hold as it is. The rest, non-ASCII included, becomes an escape (security case K09). */
const PLAIN = /^[ !#-[\]-~]*$/;

const ELLIPSIS = "\\u2026";

/**
 * `text` as a JSON string, quotes included, of printable ASCII alone. What is inside the quotes is at most
 * `limit` bytes; a cut falls on no escape and on no surrogate pair, and is marked with an ellipsis.
 */
export function quote(text: string, limit = FIELD_BYTES): string {
  if (text.length <= limit && PLAIN.test(text)) {
    return `"${text}"`;
  }
  return `"${escapeUpTo(text, limit)}"`;
}

function escapeUpTo(text: string, limit: number): string {
  let out = "";
  /** Length of `out` up to which there is still room for the ellipsis. */
  let safe = 0;
  for (let at = 0; at < text.length; ) {
    const size = isPair(text, at) ? 2 : 1;
    const piece = size === 2 ? escapeUnit(text, at) + escapeUnit(text, at + 1) : escapeUnit(text, at);
    if (out.length + piece.length > limit) {
      return out.slice(0, safe) + ELLIPSIS;
    }
    out += piece;
    if (out.length <= limit - ELLIPSIS.length) {
      safe = out.length;
    }
    at += size;
  }
  return out;
}

function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}

function escapeUnit(text: string, at: number): string {
  const unit = text.charCodeAt(at);
  if (unit === 0x22 || unit === 0x5c) {
    return `\\${text[at]}`;
  }
  if (unit >= 0x20 && unit <= 0x7e) {
    return text.charAt(at);
  }
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
