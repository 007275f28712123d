/** The two files of a CA on disk: published so that nobody ever sees half of one, read with suspicion. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Failure } from "../model/failure.ts";

export interface CaPair {
  readonly certificate: string;
  /** PKCS#8 PEM. Secret. */
  readonly key: string;
}

const CERTIFICATE_FILE = "ca.pem";
export const KEY_FILE = "ca.key";

/** Whoever published the key publishes the certificate within microseconds, unless it died between the two. */
const PARTNER_WAIT_MS = 1_000;
const PARTNER_POLL_MS = 10;
const MAX_FILE_BYTES = 1_048_576;

/** Undefined where neither file is there. Throws `E_CONFIG` on one without the other and on a key open to others. */
export function readPair(dir: string): CaPair | undefined {
  const deadline = performance.now() + PARTNER_WAIT_MS;
  for (;;) {
    // In this order: the key is published first, so a certificate without a key is no passing state.
    const certificate = readIfThere(join(dir, CERTIFICATE_FILE), false);
    const key = readIfThere(join(dir, KEY_FILE), true);
    if (certificate === undefined && key === undefined) return undefined;
    if (certificate !== undefined && key !== undefined) return { certificate, key };
    if (certificate !== undefined) throw alone(dir, CERTIFICATE_FILE, KEY_FILE);
    if (performance.now() > deadline) throw alone(dir, KEY_FILE, CERTIFICATE_FILE);
    sleep(PARTNER_POLL_MS);
  }
}

/** Where the certificate is, or will be. */
export function certificatePath(dir: string): string {
  return join(dir, CERTIFICATE_FILE);
}

/** PEM of the certificate alone, for those who may not read the key. Undefined where it is not there. */
export function readCertificate(dir: string): string | undefined {
  return readIfThere(certificatePath(dir), false);
}

/** Puts both files there, unless another process was first: then its pair stays and this one is dropped. */
export function publishPair(dir: string, pair: CaPair): void {
  const suffix = randomBytes(8).toString("hex");
  const key = join(dir, KEY_FILE);
  const certificate = join(dir, CERTIFICATE_FILE);
  try {
    // Both are on disk before either has its name, so that the moment between the two links is short.
    writeWhole(`${key}.${suffix}`, pair.key, 0o600);
    writeWhole(`${certificate}.${suffix}`, pair.certificate, 0o644);
    if (claim(`${key}.${suffix}`, key)) claim(`${certificate}.${suffix}`, certificate);
  } catch (error) {
    throw misconfigured(`No CA can be made in ${dir} (${codeOf(error)}); make it writable or name another`);
  } finally {
    rmSync(`${key}.${suffix}`, { force: true });
    rmSync(`${certificate}.${suffix}`, { force: true });
  }
}

/** A hard link is the one step that is atomic and fails where the name is taken. */
function claim(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function writeWhole(path: string, text: string, mode: number): void {
  const file = openSync(path, "wx", mode);
  try {
    // The umask may have taken bits away that other users need to read the certificate.
    fchmodSync(file, mode);
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** One descriptor for the check and for the reading, so that both are about the same file. */
function readIfThere(path: string, secret: boolean): string | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw misconfigured(
      `The CA file ${path} cannot be read (${codeOf(error)}); run as its owner, or with a config whose ca.dir is this user's own`,
    );
  }
  try {
    const { mode, size } = fstatSync(file);
    if (secret && (mode & 0o077) !== 0) {
      throw misconfigured(`The CA key ${path} is open to other users; run chmod 600 on it`);
    }
    if (size === 0 || size > MAX_FILE_BYTES) {
      throw misconfigured(`The CA file ${path} is empty or too large; restore it or remove both files`);
    }
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw misconfigured(
      `The CA file ${path} cannot be read (${codeOf(error)}); restore it or remove both files`,
    );
  } finally {
    closeSync(file);
  }
}

/** Blocks: this runs at start, before anything is served. */
function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function alone(dir: string, present: string, absent: string): Failure {
  return misconfigured(
    `The CA directory ${dir} holds ${present} without ${absent}; restore ${absent} or remove ${present}`,
  );
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

function misconfigured(message: string): Failure {
  return new Failure("E_CONFIG", "operator", message);
}
