/** Which fields hold secrets, going by their names. Pure. */

const SECRET = /auth|cookie|token|secret|passw|credential|signature|api[-_]?key|access[-_]?key|session/i;

/** Whether what is written under this name surely should not be seen. */
export function namesSecret(name: string): boolean {
  return SECRET.test(name);
}

/** Shorter ones are found in innocent words, and are no secrets worth the name. Bytes. */
export const MIN_SECRET = 8;

/** Whether no word of this value is long enough to be told from an innocent one. */
export function hasNoLongWord(value: string): boolean {
  return value.split(" ").every(({ length }) => length < MIN_SECRET);
}
