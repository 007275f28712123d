/** One file that holds one secret, read again when it changes. */
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { valueProblem } from "./field-value.ts";

/** The same object for as long as nothing changes. */
export type Reading =
  | { readonly ok: true; readonly value: string }
  | {
      readonly ok: false;
      readonly problem: string;
      /** Present where it may be had in a while: resolves, and never rejects, once that is known. */
      readonly whenKnown?: () => Promise<void>;
      /** Nobody needed it yet, so nothing is wrong with it. */
      readonly untried?: true;
    };

export interface SecretFile {
  /** Looks at the file at most once a second. Never throws; no problem quotes the content. */
  read(): Reading;
}

const MAX_FILE = 65_536;
const CHECK_INTERVAL = 1_000;
/** File times are coarse: a second change may leave the times of a file that was changed just now as they were. */
const SETTLING = 2_000;

/** `now`: milliseconds, by any clock that does not go back. */
export function watchSecretFile(path: string, now: () => number, lines = false): SecretFile {
  let checked = Number.NEGATIVE_INFINITY;
  let stamp: string | undefined;
  let reading: Reading = { ok: false, problem: `File \`${path}\` was not read yet` };

  return {
    read() {
      const time = now();
      if (time - checked < CHECK_INTERVAL) return reading;
      checked = time;
      const next = check();
      if (!sameReading(reading, next)) reading = next;
      return reading;
    },
  };

  function check(): Reading {
    try {
      if (stamp !== undefined && stamp === stampOf(path)) return reading;
      const { bytes, seen } = readSettled(path);
      stamp = seen;
      return decode(path, bytes, lines);
    } catch (error) {
      stamp = undefined;
      return problem(path, describe(error));
    }
  }
}

class Unusable extends Error {}

function describe(error: unknown): string {
  if (error instanceof Unusable) return error.message;
  return `cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`;
}

function sameReading(a: Reading, b: Reading): boolean {
  return a.ok ? b.ok && a.value === b.value : !b.ok && a.problem === b.problem;
}

/** Undefined while the file may still be changing within the grain of its times. */
function stampOf(path: string): string | undefined {
  return stampFrom(statSync(path, { bigint: true }));
}

interface Times {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
}

function stampFrom({ dev, ino, size, mtimeNs, ctimeNs }: Times): string | undefined {
  if (Math.abs(Date.now() - Number(mtimeNs / 1_000_000n)) < SETTLING) return undefined;
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

/** The content, read once more where somebody wrote meanwhile: half a secret is a wrong one. */
function readSettled(path: string): { readonly bytes: Buffer; readonly seen: string | undefined } {
  // A pipe without a writer would block the whole process.
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    for (let attempt = 0; ; attempt++) {
      const before = fstatSync(descriptor, { bigint: true });
      if (!before.isFile()) throw new Unusable("is not a regular file");
      const bytes = readBytes(descriptor);
      const after = fstatSync(descriptor, { bigint: true });
      if (attempt === 1 || (before.mtimeNs === after.mtimeNs && before.size === after.size)) {
        return { bytes, seen: stampFrom(before) };
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

function readBytes(descriptor: number): Buffer {
  const buffer = Buffer.alloc(MAX_FILE + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < buffer.length; length += read) {
    read = readSync(descriptor, buffer, length, buffer.length - length, length);
  }
  if (length > MAX_FILE) throw new Unusable("is larger than 64 KiB");
  return buffer.subarray(0, length);
}

function decode(path: string, bytes: Buffer, lines: boolean): Reading {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return problem(path, "is not UTF-8");
  }
  // Editors and `echo` end a file with a newline that nobody means.
  const value = text.replace(/\r?\n$/, "");
  const wrong = valueProblem(value, lines);
  return wrong === undefined ? { ok: true, value } : problem(path, wrong);
}

function problem(path: string, what: string): Reading {
  return { ok: false, problem: `File \`${path}\` ${what}` };
}
