/** What keeps a text from being the value of a header field (RFC 9110 section 5.5). Pure. */

/** As much as a head of the default size can carry beside its other fields. */
export const MAX_VALUE = 16_384;

/** Why `text` cannot be a whole value, to be read after its name; undefined where it can. Quotes none of it. */
export function valueProblem(text: string, lines = false): string | undefined {
  if (text === "") return "is empty";
  if (text.length > MAX_VALUE) return "is longer than 16 KiB";
  // A key file: no header ever carries it as it is.
  if (lines) return text.includes("\0") ? "holds a NUL" : undefined;
  if (text !== text.trim()) return "starts or ends with a blank or line break";
  return characterProblem(text);
}

/** The same for a piece of a value. A tab is legal there, and in a secret surely a mistake. */
export function characterProblem(text: string): string | undefined {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x7f) return "holds a line break, NUL or another control character";
    // Written as latin1, U+010A would put its low byte on the wire: LF.
    if (code > 0xff) return "holds a character that cannot stand in a header";
  }
  return undefined;
}
