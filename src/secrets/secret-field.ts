/** Which fields hold secrets, going by their names. Pure. */

const SECRET = /auth|cookie|token|secret|passw|credential|signature|api[-_]?key|access[-_]?key|session/i;

/** Whether what is written under this name surely should not be seen. */
export function namesSecret(name: string): boolean {
  return SECRET.test(name);
}
