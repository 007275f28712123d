/** The files that make a client trust the gate beside everybody whom this machine trusts. */
import { randomBytes, X509Certificate } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import type { Ca } from "./ca.ts";
import { systemRoots } from "./system-roots.ts";
import { buildTruststore } from "./truststore.ts";

/** The certificate is all that a trust store needs of an authority. */
export type Trusted = Pick<Ca, "certificatePem">;

/** Readable by every sandbox, changed by none. */
const MODE = 0o444;

/** Writes PEM of the machine's roots and `ca`: whole or not at all, mode 0444. Throws `E_CONFIG` where it cannot. */
export function writeBundle(path: string, ca: Trusted): void {
  publish(path, bundleOf(ca));
}

/** The same as PKCS#12, without a password, for Java. */
export function writeTruststore(path: string, ca: Trusted): void {
  publish(path, truststoreOf(ca));
}

export function truststoreOf(ca: Trusted): Uint8Array {
  const certificates = trusted(ca).map((pem, index) => ({
    alias: index === 0 ? "sallyport" : `root-${index}`,
    der: new X509Certificate(pem).raw,
  }));
  return buildTruststore(certificates);
}

/** PEM of the gate's authority, then of the machine's roots. */
export function bundleOf(ca: Trusted): string {
  return trusted(ca).join("");
}

/** Each certificate once, ending in one newline. */
function trusted({ certificatePem }: Trusted): readonly string[] {
  return [...new Set([certificatePem, ...systemRoots()].map((pem) => `${pem.trim()}\n`))];
}

function publish(path: string, content: string | Uint8Array): void {
  const unfinished = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    writeWhole(unfinished, content);
    renameSync(unfinished, path);
  } catch (error) {
    discard(unfinished);
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    const remedy = code === "ENOENT" ? "its folder is not there: make it first" : "name another place";
    throw new Failure("E_CONFIG", "operator", `${path} cannot be written (${code}); ${remedy}`);
  }
}

/** What keeps it from going is what kept it from being written, and that is told. */
function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // See above.
  }
}

function writeWhole(path: string, content: string | Uint8Array): void {
  const file = openSync(path, "wx", MODE);
  try {
    // The umask may have taken bits away that other users need.
    fchmodSync(file, MODE);
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
