/**
 * Who hears what a stream of `node:http2` tells. Pure.
 *
 * A stream that is closed stays in memory until V8's next full collection, for the session's table of streams is a Map
 * (see roster.ts). Listeners that were closures would keep the whole exchange there with it, so all streams share
 * these, and forget their owner when they close.
 */
import type { EventEmitter } from "node:events";

/** Field names and values in turn, as they came. */
type Pairs = readonly string[];

export interface StreamOwner {
  onData(bytes: Buffer): void;
  onEnd(): void;
  onTrailers(pairs: Pairs): void;
  onDrain(): void;
  onWantTrailers(): void;
  /** Every end is heard here, errors too. */
  onClose(): void;
  /** A client's stream alone has these: the final head, with its flags and the names that must not be indexed. */
  onResponse?(pairs: Pairs, flags: number, fields: object): void;
  onInterim?(pairs: Pairs): void;
  /** A server's stream alone. */
  onAborted?(): void;
}

export type StreamEvent = keyof typeof LISTENERS;

const OWNER = Symbol("owner");

interface Owned {
  [OWNER]?: StreamOwner | undefined;
}

const LISTENERS = {
  data(this: Owned, bytes: Buffer): void {
    this[OWNER]?.onData(bytes);
  },
  end(this: Owned): void {
    this[OWNER]?.onEnd();
  },
  trailers(this: Owned, _fields: object, _flags: number, pairs: Pairs): void {
    this[OWNER]?.onTrailers(pairs);
  },
  drain(this: Owned): void {
    this[OWNER]?.onDrain();
  },
  wantTrailers(this: Owned): void {
    this[OWNER]?.onWantTrailers();
  },
  response(this: Owned, fields: object, flags: number, pairs: Pairs): void {
    this[OWNER]?.onResponse?.(pairs, flags, fields);
  },
  headers(this: Owned, _fields: object, _flags: number, pairs: Pairs): void {
    this[OWNER]?.onInterim?.(pairs);
  },
  aborted(this: Owned): void {
    this[OWNER]?.onAborted?.();
  },
  error(this: Owned): void {
    // It is told at `close`; this is here so that none is unheard.
  },
  close(this: Owned): void {
    this[OWNER]?.onClose();
    this[OWNER] = undefined;
  },
};

/** From now on `owner` hears when `stream` closes, and of `events`. Each listener costs: only what may come is listed. */
export function own(stream: EventEmitter, owner: StreamOwner, events: readonly StreamEvent[]): void {
  (stream as Owned)[OWNER] = owner;
  stream.on("error", LISTENERS.error);
  stream.on("close", LISTENERS.close);
  for (const event of events) listen(stream, event);
}

/** Of one event more. */
export function listen(stream: EventEmitter, event: StreamEvent): void {
  stream.on(event, LISTENERS[event]);
}

/** The body starts to flow. */
export function readBody(stream: EventEmitter): void {
  listen(stream, "data");
  listen(stream, "end");
}

interface Closed {
  readonly rstCode: number | undefined;
  readonly writableFinished: boolean;
  readonly destroyed: boolean;
  destroy(): unknown;
}

/**
 * A stream that was reset without an error waits in `node:http2` for its writes to leave, which they never do: it would
 * not close, and stay counted on its connection for good. The reset itself is on its way.
 */
export function endClosed(stream: Closed): void {
  if (stream.rstCode === 0 && !stream.writableFinished && !stream.destroyed) stream.destroy();
}
