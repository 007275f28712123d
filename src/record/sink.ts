/** Where record lines end up: a file, a pipe or stdout, opened so that no write can hold up the process. */
import { close, constants, fstatSync, open, openSync, write, writeSync } from "node:fs";
import { stderr, stdout } from "node:process";
import type { Writable } from "node:stream";
import { Failure } from "../model/failure.ts";

export interface Sink {
  /** The most that goes into one write. */
  readonly batchBytes: number;
  /** One at a time. `written` may be less than was given. */
  write(
    bytes: Buffer,
    done: (error: NodeJS.ErrnoException | null | undefined, written: number) => void,
  ): void;
  close(): void;
}

type Done = (error: NodeJS.ErrnoException | null | undefined, written: number) => void;

const STDOUT = 1;
const STDERR = 2;
const NEWLINE = 0x0a;

/** Of a pipe, the most that POSIX keeps in one piece (PIPE_BUF): workers share stdout. */
const PIPE_PIECE = 4_096;
const BATCH = 65_536;

/** Never wait for the reader of a pipe: a thread that is stuck in `write` would keep the process from ending. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
const MODE = 0o600;

/** Stands for stderr where `-` would be stdout: its stdout is a command's own. */
export const STDERR_RECORDS = "&2";

/** `file`: a path, `-` for stdout, or `STDERR_RECORDS`. Throws a `Failure` (E_CONFIG) if it cannot be opened. */
export function openSink(file: string): Sink {
  if (file === "-") {
    return openStandard(STDOUT, stdout);
  }
  if (file === STDERR_RECORDS) {
    return openStandard(STDERR, stderr);
  }
  try {
    return fileSink(openSync(file, FLAGS | constants.O_CREAT, MODE));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const message = `The records file ${file} cannot be opened (${code}); records.file needs a folder that is there, and the right to write`;
    throw new Failure("E_CONFIG", "operator", message, { cause: error });
  }
}

/** The same path anew, without waiting; undefined if it cannot be opened. */
export function reopenSink(file: string): Promise<Sink | undefined> {
  return new Promise((resolve) => {
    open(file, FLAGS | constants.O_CREAT, MODE, (error, fd) =>
      resolve(error === null ? fileSink(fd) : undefined),
    );
  });
}

/**
 * Stdout is shared with whoever started us, so its flags are not ours to change. On Linux a pipe or a terminal
 * can be opened anew with flags of our own. A socket, or another user's pipe, cannot: Node's stream waits for it
 * without a thread. A file does not make anyone wait.
 */
function openStandard(fd: typeof STDOUT | typeof STDERR, stream: Writable): Sink {
  if (fstatSync(fd).isFile()) {
    return fileSink(fd);
  }
  try {
    return fileSink(openSync(`/proc/self/fd/${fd}`, FLAGS));
  } catch {
    return streamSink(stream);
  }
}

function fileSink(fd: number): Sink {
  const isFile = fstatSync(fd).isFile();
  return {
    batchBytes: BATCH,
    write: isFile ? (bytes, done) => write(fd, bytes, done) : (bytes, done) => writePieces(fd, bytes, done),
    close: () => {
      if (fd > STDERR) {
        close(fd, () => undefined);
      }
    },
  };
}

/**
 * A pipe that does not wait is written to at once: a turn of the loop for each small piece would be too few of
 * them under load, and a thread costs more than the write.
 */
function writePieces(fd: number, bytes: Buffer, done: Done): void {
  let written = 0;
  let failed: NodeJS.ErrnoException | null = null;
  try {
    while (written < bytes.length) {
      written += writeSync(fd, bytes, written, pieceLength(bytes, written));
    }
  } catch (error) {
    failed = written > 0 ? null : (error as NodeJS.ErrnoException);
  }
  setImmediate(done, failed, written);
}

/** As many whole lines as stay in one piece, or one line that is longer. */
function pieceLength(bytes: Buffer, from: number): number {
  if (bytes.length - from <= PIPE_PIECE) {
    return bytes.length - from;
  }
  const end = bytes.lastIndexOf(NEWLINE, from + PIPE_PIECE - 1);
  return (end >= from ? end : bytes.indexOf(NEWLINE, from)) + 1 - from;
}

function streamSink(stream: Writable): Sink {
  stream.on("error", () => undefined); // The callback of the write has it too.
  return {
    batchBytes: PIPE_PIECE,
    write: (bytes, done) => {
      stream.write(bytes, (error) => done(error, bytes.length));
    },
    close: () => undefined,
  };
}
