/** Which fields hold secrets, going by their names. Pure. */

const SECRET = /auth|cookie|token|secret|passw|credential|signature|api[-_]?key|access[-_]?key|session/i;

/** Whether what is written under this name surely should not be seen. */
export function namesSecret(name: string): boolean {
  return SECRET.test(name);
}

/** Fields of credentials and certificates whose name alone does not say so. */
const CREDENTIAL = /^(?:credentials|upstream\.client_certificates)\..+\.(?:value|passphrase)$/;

/** Whether what is written out at this key of the config, such as `credentials.slack.value`, is a secret and nothing else. */
export function isSecretKey(key: string): boolean {
  return CREDENTIAL.test(key);
}

/** Whether something at this key of the config surely should not be seen. */
export function keyNamesSecret(key: string): boolean {
  return isSecretKey(key) || namesSecret(key.slice(key.lastIndexOf(".") + 1));
}

/** Shorter ones are found in innocent words, and are no secrets worth the name. Bytes. */
export const MIN_SECRET = 8;

/** Whether no word of this value is long enough to be told from an innocent one. */
export function hasNoLongWord(value: string): boolean {
  return value.split(" ").every(({ length }) => length < MIN_SECRET);
}
