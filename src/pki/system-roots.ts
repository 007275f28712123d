/** The certificate authorities that this machine trusts. */
import { getCACertificates } from "node:tls";

/** PEM, each once; those that Node brings along where the machine has none. Reads files: call it at start. */
export function systemRoots(): string[] {
  const system = getCACertificates("system");
  // Debian's directory holds every root as a file of its own and once more in the bundle.
  return [...new Set(system.length > 0 ? system : getCACertificates("bundled"))];
}
