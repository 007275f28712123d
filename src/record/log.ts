/** The operator's log: one line an event, escaped, redacted, and quiet when one message repeats (security cases K08, K09, G13). */
import type { Writable } from "node:stream";
import { quote } from "./escape.ts";
import { timestamp } from "./render.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** `message` is a constant of the code: repetition is counted by it. What varies goes into `fields`. */
export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Says what was held back so far. */
  flush(): void;
}

type Level = "info" | "warn" | "error";

interface Seen {
  readonly level: Level;
  readonly message: string;
  written: number;
  suppressed: number;
}

/** Lines of one message in one window; the rest are counted and said at its end. */
const LINES = 10;
const WINDOW_MS = 10_000;
/** Different messages in one window. Past them a message shares the count of `other messages`. */
const MESSAGES = 256;
/** A reader that stalls must not make us hold its log. */
const BACKLOG_BYTES = 1_048_576;

/** A value that needs no quotes in `key=value`. */
const BARE = /^[\w.:/@%+,-]+$/;

/**
 * `redact` takes secrets out of a text; it sees each text whole, before anything is escaped or cut, so that no
 * part of a secret slips by it. A log never throws.
 */
export function createLog(stream: Writable, redact: (text: string) => string): Log {
  const seen = new Map<string, Seen>();
  let timer: NodeJS.Timeout | undefined;
  stream.on("error", () => undefined); // The log has nowhere else to complain.

  function log(level: Level, message: string, fields: LogFields): void {
    timer ??= setTimeout(flush, WINDOW_MS).unref();
    const entry = entryOf(seen, level, message);
    if (entry.written === LINES || stream.writableLength > BACKLOG_BYTES) {
      entry.suppressed += 1;
      return;
    }
    entry.written += 1;
    stream.write(renderLine(level, message, fields, redact));
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const { level, message, suppressed } of seen.values()) {
      if (suppressed > 0) {
        stream.write(renderLine(level, message, { suppressed }, redact));
      }
    }
    seen.clear();
  }

  return {
    info: (message, fields = {}) => log("info", message, fields),
    warn: (message, fields = {}) => log("warn", message, fields),
    error: (message, fields = {}) => log("error", message, fields),
    flush,
  };
}

function entryOf(seen: Map<string, Seen>, level: Level, message: string): Seen {
  const key = seen.size < MESSAGES || seen.has(level + message) ? level + message : `${level}other`;
  const known = seen.get(key);
  if (known !== undefined) {
    return known;
  }
  const entry = {
    level,
    message: key === level + message ? message : "Other messages",
    written: 0,
    suppressed: 0,
  };
  seen.set(key, entry);
  return entry;
}

/** Example: `2026-05-01T12:00:00.000Z warn "Config was not taken up" file=/etc/sallyport.yaml line=3`. */
function renderLine(
  level: Level,
  message: string,
  fields: LogFields,
  redact: (text: string) => string,
): string {
  let line = `${timestamp(Date.now())} ${level} ${quote(redacted(message, redact))}`;
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) {
      line += ` ${key}=${renderValue(redacted(`${value}`, redact))}`;
    }
  }
  return `${line}\n`;
}

function renderValue(text: string): string {
  return text.length <= 256 && BARE.test(text) ? text : quote(text);
}

/** A text that cannot be checked is not shown. */
function redacted(text: string, redact: (text: string) => string): string {
  try {
    return redact(text);
  } catch {
    return "[not shown]";
  }
}
