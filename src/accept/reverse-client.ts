/** One client of the base-URL listener: its requests in turn, and the streams in this process that carry them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { StreamEnd } from "./stream-pair.ts";

/** Requests that one client may have sent ahead. */
const PIPELINED = 64;
/** Idle streams kept for one client; each serves one destination. */
const IDLE_STREAMS = 8;

/** How long a client may leave its side open once we have closed ours. */
export const LINGER_MS = 2_000;

interface Idle {
  readonly key: string;
  readonly stream: StreamEnd;
}

/** How a body broke off: by bytes that are no chunk, or by the client closing its side. */
export type BodyEnd = "malformed" | "ended";

export class ReverseClient {
  readonly socket: Socket;
  /** No further request is read: it was told so, or its bytes made no sense. */
  closing = false;
  /** Its bytes made no sense, or ended in the middle: nothing behind them is read. */
  broken = false;
  /** To the request under way, where it is HTTP. */
  response: ServerResponse | undefined = undefined;
  /** The request under way, where it is HTTP. */
  message: IncomingMessage | undefined = undefined;
  /** Breaks off, on the way to the exchange, the body of the request under way: it has the one record and answers. */
  breakOff: ((how: BodyEnd) => void) | undefined = undefined;
  #busy = false;
  #waiting: (() => void)[] = [];
  #idle: Idle[] = [];
  readonly #streams = new Set<StreamEnd>();

  constructor(socket: Socket) {
    this.socket = socket;
    socket.once("close", () => this.closeStreams());
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Runs `step` once the requests before it are over; never, where one of them ends the connection. */
  take(step: () => void): void {
    if (this.closing) return;
    if (this.#waiting.length === PIPELINED) this.cut();
    else if (this.#busy) this.#waiting.push(step);
    else {
      this.#busy = true;
      step();
    }
  }

  /** The answer to the request under way has left, or will not. */
  done(): void {
    this.#busy = false;
    this.response = undefined;
    this.message = undefined;
    this.breakOff = undefined;
    const next = this.closing ? undefined : this.#waiting.shift();
    if (next !== undefined) this.take(next);
    else if (this.closing) this.#leave();
  }

  /** An idle stream of this key, or the one that `open` makes. */
  stream(key: string, open: () => StreamEnd): StreamEnd {
    const at = this.#idle.findIndex((idle) => idle.key === key && idle.stream.whole);
    const known = at < 0 ? undefined : this.#idle.splice(at, 1)[0];
    if (known !== undefined) return known.stream;
    const stream = open();
    this.#streams.add(stream);
    stream.once("close", () => {
      this.#streams.delete(stream);
      this.#forget(stream);
    });
    stream.on("end", () => {
      if (this.#forget(stream)) stream.destroy();
    });
    return stream;
  }

  /** The exchange on it is over, and another one may follow. */
  release(key: string, stream: StreamEnd): void {
    if (!stream.whole) {
      stream.destroy();
      return;
    }
    // Flowing, so that its end is heard.
    stream.resume();
    this.#idle.push({ key, stream });
    if (this.#idle.length > IDLE_STREAMS) this.#idle.shift()?.stream.destroy();
  }

  closeStreams(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  drain(): void {
    this.closing = true;
    if (!this.#busy) this.#leave();
  }

  cut(): void {
    this.closing = true;
    this.socket.resetAndDestroy();
  }

  whenClosed(callback: () => void): void {
    if (this.socket.closed) callback();
    else this.socket.once("close", callback);
  }

  /** Closes our side, and the client has a moment to close its own. */
  #leave(): void {
    this.socket.end();
    const patience = setTimeout(() => this.socket.destroy(), LINGER_MS);
    this.socket.once("close", () => clearTimeout(patience));
  }

  #forget(stream: StreamEnd): boolean {
    const before = this.#idle.length;
    this.#idle = this.#idle.filter((idle) => idle.stream !== stream);
    return this.#idle.length < before;
  }
}
