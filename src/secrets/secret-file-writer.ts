/** Puts a secret into the place of another: whole or not at all, and readable by nobody new. */
import { closeSync, fsyncSync, openSync, renameSync, statSync, unlinkSync, writeSync } from "node:fs";

/** What kept it from being written; undefined where it was. Never throws, and quotes no secret. */
export function writeSecretFile(path: string, secret: string): string | undefined {
  const beside = `${path}.${process.pid}.new`;
  try {
    const { mode } = statSync(path);
    const descriptor = openSync(beside, "wx", mode & 0o600);
    try {
      writeSync(descriptor, `${secret}\n`);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(beside, path);
    return undefined;
  } catch (error) {
    remove(beside);
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return `The new one cannot be written to \`${path}\` (${code}); it is kept in memory alone`;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was not made.
  }
}
