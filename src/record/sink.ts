/** Where record lines end up: a file, a pipe or stdout, opened so that no write can hold up the process. */
import { close, constants, fstatSync, open, openSync, write } from "node:fs";
import { stdout } from "node:process";
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

const STDOUT = 1;

/** Of a pipe, the most that POSIX keeps in one piece (PIPE_BUF): workers share stdout. */
const PIPE_BATCH = 4_096;
const FILE_BATCH = 65_536;

/** Never wait for the reader of a pipe: a thread that is stuck in `write` would keep the process from ending. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY;
const MODE = 0o600;

/** `file`: a path, or `-` for stdout. Throws a `Failure` (E_CONFIG) if it cannot be opened. */
export function openSink(file: string): Sink {
  if (file === "-") {
    return openStdout();
  }
  try {
    return fileSink(openSync(file, FLAGS | constants.O_CREAT, MODE));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw new Failure("E_CONFIG", "operator", `The records file cannot be opened (${code})`, {
      cause: error,
    });
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
function openStdout(): Sink {
  const kind = fstatSync(STDOUT);
  if (kind.isFile()) {
    return fileSink(STDOUT);
  }
  try {
    return fileSink(openSync("/proc/self/fd/1", FLAGS));
  } catch {
    return streamSink(stdout);
  }
}

function fileSink(fd: number): Sink {
  return {
    batchBytes: fstatSync(fd).isFile() ? FILE_BATCH : PIPE_BATCH,
    write: (bytes, done) => write(fd, bytes, done),
    close: () => {
      if (fd !== STDOUT) {
        close(fd, () => undefined);
      }
    },
  };
}

function streamSink(stream: Writable): Sink {
  stream.on("error", () => undefined); // The callback of the write has it too.
  return {
    batchBytes: PIPE_BATCH,
    write: (bytes, done) => {
      stream.write(bytes, (error) => done(error, bytes.length));
    },
    close: () => undefined,
  };
}
