/**
 * Writes a secret over another in its file. Not into a new file that takes its name: a jail's mask lies over the file
 * and would go with it, and until then the new one would lie beside it in plain sight.
 */
import { closeSync, fchmodSync, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from "node:fs";

/** What kept it from being written; undefined where it was. Never throws, and quotes no secret. */
export function writeSecretFile(path: string, secret: string): string | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, "r+");
    fchmodSync(descriptor, fstatSync(descriptor).mode & 0o600);
    const text = Buffer.from(`${secret}\n`, "utf8");
    // The end of the old one is cut last: whoever reads in between finds a line break, and no shorter secret.
    const written = writeSync(descriptor, text, 0, text.length, 0);
    if (written < text.length) throw Object.assign(new Error(), { code: "ENOSPC" });
    ftruncateSync(descriptor, text.length);
    fsyncSync(descriptor);
    return undefined;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return `The new one cannot be written to \`${path}\` (${code}); it is kept in memory alone`;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
