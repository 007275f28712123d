/** Writes record lines to a file or a pipe behind the event loop's back: never blocking, never throwing, counting what is lost. */
import { openSink, reopenSink, type Sink } from "./sink.ts";

export interface RecordWriter {
  /** `line`: printable ASCII that ends in a newline and, for a pipe, is at most 4,096 bytes. */
  write(line: string): void;
  /** Opens the path anew after a rotation. False: that did not work, and the old file stays in use. */
  reopen(): Promise<boolean>;
  /** Writes what is waiting, for two seconds at most; what is left then is dropped and counted. */
  close(): Promise<void>;
  /** Lines lost so far. */
  readonly dropped: number;
}

export interface RecordWriterOptions {
  /** A path, or `-` for stdout. */
  readonly file: string;
  /** Bytes that may wait; past them lines are dropped. */
  readonly bufferBytes: number;
  readonly onDrop: (count: number) => void;
}

/** How files are opened. */
export interface Opening {
  open(file: string): Sink;
  reopen(file: string): Promise<Sink | undefined>;
}

/**
 * Lines that go out in one write. They are bytes from the start: strings that are joined and wait as such are
 * trees of small objects, and walking those is most of what a record costs (measured).
 */
interface Batch {
  readonly bytes: Buffer;
  length: number;
  lines: number;
}

interface State {
  readonly options: RecordWriterOptions;
  readonly opening: Opening;
  sink: Sink;
  /** Full batches, oldest first. */
  readonly full: Batch[];
  filling: Batch;
  /** Bytes in `full`, `filling` and `rest`. */
  waiting: number;
  /** What of the current batch is not written yet; undefined between two batches. */
  rest: Buffer | undefined;
  /** `rest` begins inside a line. */
  torn: boolean;
  writing: boolean;
  timer: NodeJS.Timeout | undefined;
  /** The timer waits for more lines, not for a pipe or a disk. */
  gathering: boolean;
  closed: boolean;
  dropped: number;
  /** Opened by `reopen`; put in place between two writes. */
  next: Sink | undefined;
  emptied: () => void;
}

const NEWLINE = 0x0a;
const NOTHING = Buffer.alloc(0);

/** Lines of this time share a write. */
const GATHER_MS = 20;
/** Until a full pipe is asked again. */
const FULL_MS = 10;
/** Until a full disk, or a pipe whose reader has gone, is asked again. */
const BROKEN_MS = 250;
const CLOSE_MS = 2_000;

const FILES: Opening = { open: openSink, reopen: reopenSink };

/** Throws a `Failure` (E_CONFIG) if the file cannot be opened at the start; nothing throws later. */
export function createRecordWriter(options: RecordWriterOptions, opening: Opening = FILES): RecordWriter {
  const state: State = {
    options,
    opening,
    sink: opening.open(options.file),
    full: [],
    filling: emptyBatch(),
    waiting: 0,
    rest: undefined,
    torn: false,
    writing: false,
    timer: undefined,
    gathering: false,
    closed: false,
    dropped: 0,
    next: undefined,
    emptied: () => undefined,
  };
  return {
    write: (line) => add(state, line),
    reopen: () => reopen(state),
    close: () => close(state),
    get dropped() {
      return state.dropped;
    },
  };
}

function add(state: State, line: string): void {
  if (state.closed || state.waiting + line.length > state.options.bufferBytes) {
    drop(state, 1);
    return;
  }
  state.waiting += line.length;
  if (state.filling.length + line.length > state.filling.bytes.length) {
    startBatch(state, line.length);
  }
  const filling = state.filling;
  filling.length += filling.bytes.write(line, filling.length, "latin1");
  filling.lines += 1;
  if (state.writing) {
    return;
  }
  if (state.timer === undefined) {
    pumpIn(state, GATHER_MS);
    state.gathering = true;
  } else if (state.gathering && state.full.length > 0) {
    clearTimeout(state.timer);
    pump(state);
  }
}

/** `length`: of the first line, which may be longer than a batch should be. */
function startBatch(state: State, length: number): void {
  if (state.filling.lines > 0) {
    state.full.push(state.filling);
  }
  const bytes = Buffer.allocUnsafe(Math.max(length, state.sink.batchBytes));
  state.filling = { bytes, length: 0, lines: 0 };
}

/** Has room for nothing, so the next line starts a batch. */
function emptyBatch(): Batch {
  return { bytes: NOTHING, length: 0, lines: 0 };
}

function pumpIn(state: State, ms: number): void {
  state.gathering = false;
  state.timer = setTimeout(pump, ms, state);
}

/** Starts the next write, if there is something to write. */
function pump(state: State): void {
  state.timer = undefined;
  state.gathering = false;
  state.rest ??= nextBatch(state);
  if (state.rest === undefined) {
    state.emptied();
    return;
  }
  state.writing = true;
  state.sink.write(state.rest, (error, written) => {
    state.writing = false;
    wrote(state, error ?? undefined, written);
  });
}

function nextBatch(state: State): Buffer | undefined {
  let batch = state.full.shift();
  if (batch === undefined) {
    batch = state.filling;
    state.filling = emptyBatch();
  }
  state.torn = false;
  return batch.lines === 0 ? undefined : batch.bytes.subarray(0, batch.length);
}

function wrote(state: State, error: NodeJS.ErrnoException | undefined, written: number): void {
  const rest = state.rest;
  if (rest === undefined) {
    state.sink.close(); // `close` gave up before this write came back.
    return;
  }
  if (error === undefined) {
    advance(state, rest, written);
  } else if (error.code !== "EAGAIN") {
    giveUpBatch(state, rest);
  }
  adoptReopened(state);
  if (error !== undefined) {
    pumpIn(state, error.code === "EAGAIN" ? FULL_MS : BROKEN_MS);
  } else if (state.rest !== undefined || state.full.length > 0 || state.closed) {
    pump(state);
  } else if (state.filling.lines > 0) {
    pumpIn(state, GATHER_MS);
    state.gathering = true;
  }
}

function advance(state: State, rest: Buffer, written: number): void {
  state.waiting -= written;
  state.torn = written > 0 ? rest[written - 1] !== NEWLINE : state.torn;
  state.rest = written < rest.length ? rest.subarray(written) : undefined;
}

/** Drops the batch, but for the end of a line whose beginning is written: the next line must not grow on to it. */
function giveUpBatch(state: State, rest: Buffer): void {
  const kept = state.torn ? rest.indexOf(NEWLINE) + 1 : 0;
  state.rest = kept > 0 ? rest.subarray(0, kept) : undefined;
  state.waiting -= rest.length - kept;
  drop(state, linesIn(rest.subarray(kept)));
}

function drop(state: State, count: number): void {
  if (count > 0) {
    state.dropped += count;
    state.options.onDrop(count);
  }
}

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) {
    count += 1;
  }
  return count;
}

async function reopen(state: State): Promise<boolean> {
  if (state.options.file === "-" || state.closed) {
    return true;
  }
  const sink = await state.opening.reopen(state.options.file);
  if (sink === undefined) {
    return false;
  }
  if (state.closed) {
    sink.close();
    return true;
  }
  state.next?.close();
  state.next = sink;
  adoptReopened(state);
  return true;
}

function adoptReopened(state: State): void {
  if (state.next === undefined || state.writing) {
    return;
  }
  state.sink.close();
  state.sink = state.next;
  state.next = undefined;
  if (state.torn && state.rest !== undefined) {
    dropTorn(state, state.rest);
  }
}

/** The beginning of this line is in the old file; its end is of no use in the new one. */
function dropTorn(state: State, rest: Buffer): void {
  const end = rest.indexOf(NEWLINE) + 1;
  state.rest = end < rest.length ? rest.subarray(end) : undefined;
  state.torn = false;
  state.waiting -= end;
  drop(state, 1);
}

async function close(state: State): Promise<void> {
  if (state.closed) {
    return;
  }
  state.closed = true;
  await new Promise<void>((resolve) => {
    const patience = setTimeout(resolve, CLOSE_MS);
    state.emptied = () => {
      clearTimeout(patience);
      resolve();
    };
    if (!state.writing) {
      clearTimeout(state.timer);
      pump(state);
    }
  });
  abandon(state);
}

/** Counts what could not be written in time, and lets go of the file. */
function abandon(state: State): void {
  clearTimeout(state.timer);
  state.emptied = () => undefined;
  let left = state.filling.lines + (state.rest === undefined ? 0 : linesIn(state.rest));
  for (const batch of state.full) {
    left += batch.lines;
  }
  state.full.length = 0;
  state.filling = emptyBatch();
  state.rest = undefined;
  state.waiting = 0;
  drop(state, left);
  state.next?.close();
  state.next = undefined;
  if (!state.writing) {
    state.sink.close();
  }
}
