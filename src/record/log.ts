/** The operator's log: one line an event, escaped, redacted, and quiet when one message repeats (security cases K08, K09, G13). */
import type { Writable } from "node:stream";
import { quote } from "./escape.ts";
import { timestamp } from "./render.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** `message` is a constant of the code: repetition is counted by it. What varies goes into `fields`. */
export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `kind`: one fault of many under one message. Each is said once in a while, and how often it came. */
  error(message: string, fields?: LogFields, kind?: string): void;
  /** Says what was held back so far. */
  flush(): void;
}

type Level = "info" | "warn" | "error";

interface Event {
  readonly level: Level;
  readonly message: string;
  readonly kind: string | undefined;
}

interface Seen extends Event {
  written: number;
  suppressed: number;
}

/** Lines of one message in one window; the rest are counted and said at its end. */
const LINES = 10;
const WINDOW_MS = 10_000;
/** The same of a message that comes in kinds: it has a stack. */
const LINES_OF_A_KIND = 1;
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

  function log(event: Event, fields: LogFields): void {
    timer ??= setTimeout(flush, WINDOW_MS).unref();
    const entry = entryOf(seen, event);
    if (
      entry.written === (entry.kind === undefined ? LINES : LINES_OF_A_KIND) ||
      stream.writableLength > BACKLOG_BYTES
    ) {
      entry.suppressed += 1;
      return;
    }
    entry.written += 1;
    stream.write(renderLine(event, fields, redact));
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const entry of seen.values()) {
      const { kind, suppressed } = entry;
      if (suppressed > 0) stream.write(renderLine(entry, { kind, suppressed }, redact));
    }
    seen.clear();
  }

  return {
    info: (message, fields = {}) => log({ level: "info", message, kind: undefined }, fields),
    warn: (message, fields = {}) => log({ level: "warn", message, kind: undefined }, fields),
    error: (message, fields = {}, kind = undefined) => log({ level: "error", message, kind }, fields),
    flush,
  };
}

function entryOf(seen: Map<string, Seen>, { level, message, kind }: Event): Seen {
  const own = `${level}${message}\n${kind ?? ""}`;
  const fits = seen.size < MESSAGES || seen.has(own);
  const key = fits ? own : `${level}other`;
  const known = seen.get(key);
  if (known !== undefined) return known;
  const same = fits ? { level, message, kind } : { level, message: "Other messages", kind: undefined };
  const entry = { ...same, written: 0, suppressed: 0 };
  seen.set(key, entry);
  return entry;
}

/** Example: `2026-05-01T12:00:00.000Z warn "Config was not taken up" file=/etc/sallyport.yaml line=3`. */
function renderLine(
  { level, message }: Pick<Event, "level" | "message">,
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
