/** Reads a file whole and as text, whatever stands at its path: it neither waits nor runs out of memory. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

export const MAX_FILE_BYTES = 1_048_576;

export type WholeFile =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

/** A regular file of UTF-8, at most 1 MiB. A pipe would block us, and a device has no end. */
export function readWhole(path: string): WholeFile {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { ok: false, problem: "This is not a regular file" };
    const buffer = Buffer.allocUnsafe(MAX_FILE_BYTES + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(descriptor, buffer, length, buffer.length - length, null);
    }
    if (length > MAX_FILE_BYTES) return { ok: false, problem: "The file is larger than 1 MiB" };
    return decode(buffer.subarray(0, length));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return {
      ok: false,
      problem: code === "ENOENT" ? "There is no such file" : `The file cannot be read (${code})`,
    };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function decode(bytes: Buffer): WholeFile {
  try {
    return { ok: true, text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch {
    return { ok: false, problem: "The file is not UTF-8" };
  }
}
