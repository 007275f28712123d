/** Text for `sh`: words that mean themselves. Pure. */

/** One word, whatever is in it but NUL. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function command(...words: readonly string[]): string {
  return words.map(quoted).join(" ");
}
