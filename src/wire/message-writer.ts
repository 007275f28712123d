/** Writes HTTP/1.1 messages: heads as text, bodies framed as declared, in few writes. Pure but for one microtask. */
import type { FieldLines, Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import {
  hasUpgrade,
  isSafeValue,
  isToken,
  renderFieldLines,
  renderFramedFields,
  unwritable,
} from "./field-text.ts";
import { isTrailer } from "./trailers.ts";

export interface ResponseOptions {
  /** The connection ends after this response. Framing `close` says so by itself. */
  readonly close: boolean;
  /** The minor version that the client spoke. */
  readonly minor: 0 | 1;
}

/** A socket, to the writer. It never throws: what is wrong with it, it says elsewhere. */
export interface ByteSink {
  /** False: it wants no more until it has drained. */
  write(bytes: Buffer): boolean;
}

const TARGET = /^[\x21-\x7e]+$/;
/** One TLS record holds 16 KiB: a head and a body that fit leave as one record and one packet train. */
const COALESCED_BYTES = 16_384;
const SOON = Promise.resolve();
const LAST_CHUNK = "0\r\n";

/** Always HTTP/1.1 and a connection that persists. Throws `E_INTERNAL` on what could not leave framed. */
export function renderRequestHead(head: RequestHead, framing: Framing): string {
  if (!isToken(head.method) || !TARGET.test(head.target)) {
    throw unwritable("Request line cannot be written");
  }
  if (framing.kind === "close") {
    throw unwritable("Request without an end");
  }
  const upgrade = hasUpgrade(head.fields) ? "Connection: Upgrade\r\n" : "";
  return `${head.method} ${head.target} HTTP/1.1\r\n${renderFramedFields(head.fields, framing, false)}${upgrade}\r\n`;
}

/**
 * Always HTTP/1.1. With framing `none` a Content-Length stays where it tells of a body that is not sent (HEAD, 304).
 * Throws `E_INTERNAL` on what could not leave framed.
 */
export function renderResponseHead(head: ResponseHead, framing: Framing, options: ResponseOptions): string {
  const { status, phrase } = head;
  if (!Number.isInteger(status) || status < 100 || status > 599 || !isSafeValue(phrase)) {
    throw unwritable("Status line cannot be written");
  }
  if (framing.kind !== "none" && (status < 200 || status === 204 || status === 304)) {
    throw unwritable("Body in a response that has none");
  }
  if (framing.kind === "chunked" && options.minor === 0) {
    throw unwritable("Chunked body for HTTP/1.0");
  }
  const keepsLength = framing.kind === "none" && status >= 200 && status !== 204;
  const fields = renderFramedFields(head.fields, framing, keepsLength);
  const connection = connectionText(head, framing, options);
  return `HTTP/1.1 ${status} ${phrase}\r\n${fields}${connection}\r\n`;
}

export class BodyWriter {
  readonly #framing: Framing["kind"];
  readonly #sink: ByteSink;
  /** Bytes still owed under a length. */
  #owed: number;
  #ended = false;
  /** What the sink said last. */
  #flowing = true;
  #scheduled = false;
  #headText = "";
  /** Data not yet written, without chunk framing. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;

  constructor(framing: Framing, sink: ByteSink) {
    this.#framing = framing.kind;
    this.#owed = framing.kind === "length" ? framing.length : 0;
    this.#sink = sink;
  }

  /** A rendered head, or several: interim ones come before the final one. It leaves with the first data. */
  head(text: string): void {
    this.#refuseAfterEnd();
    this.#headText += text;
    this.#flushSoon();
  }

  /**
   * Takes a view of the data, which must stay as it is until the next microtask, or longer if the sink keeps it.
   * Large data is passed on uncopied, save into a chunk. Returns what the sink said last. Throws `E_INTERNAL` on more
   * bytes than the framing allows, before any leaves.
   */
  write(data: Buffer): boolean {
    this.#refuseAfterEnd();
    this.#account(data.length);
    if (data.length === 0) {
      return true;
    }
    if (data.length > COALESCED_BYTES && this.#framing !== "chunked") {
      this.flush();
      this.#flowing = this.#sink.write(data);
      return this.#flowing;
    }
    this.#pieces.push(data);
    this.#pieceBytes += data.length;
    if (this.#flowing && this.#headText.length + this.#pieceBytes <= COALESCED_BYTES) {
      this.#flushSoon();
    } else {
      // A sink that is full is asked at once, so that its answer is about this data: a stale "no" would leave the
      // caller waiting for a drain that never comes, a stale "yes" would let it run on.
      this.flush();
    }
    return this.#flowing;
  }

  /** The body is whole. Throws `E_INTERNAL` where the length says that it is not. Trailers go after chunks alone. */
  end(trailers: FieldLines): void {
    this.#refuseAfterEnd();
    if (this.#owed > 0) {
      throw unwritable("Body ends before its length");
    }
    const tail =
      this.#framing === "chunked" ? `${LAST_CHUNK}${renderFieldLines(trailers.filter(isTrailer))}\r\n` : "";
    this.#ended = true;
    this.#flush(tail);
  }

  /** Writes what is held back. Otherwise a microtask does. */
  flush(): void {
    this.#flush("");
  }

  /** Forgets what is held back and takes nothing more: the message was broken off. */
  discard(): void {
    this.#ended = true;
    this.#forget();
  }

  #account(bytes: number): void {
    if (this.#framing === "none" && bytes > 0) {
      throw unwritable("Body where none was declared");
    }
    if (this.#framing === "length") {
      if (bytes > this.#owed) {
        throw unwritable("Body beyond its length");
      }
      this.#owed -= bytes;
    }
  }

  #flushSoon(): void {
    if (!this.#scheduled) {
      this.#scheduled = true;
      // A promise's turn is the same microtask as `queueMicrotask` gives, at a fraction of its cost in Node.js.
      void SOON.then(this.#flushNow);
    }
  }

  readonly #flushNow = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  #flush(tail: string): void {
    const bytes = this.#held(tail);
    this.#forget();
    if (bytes !== undefined) {
      this.#flowing = this.#sink.write(bytes);
    }
  }

  /** What is held back, encoded; undefined where that is nothing. */
  #held(tail: string): Buffer | undefined {
    if (this.#headText === "" && tail === "" && this.#pieces.length < 2) {
      const only = this.#pieces[0];
      if (only === undefined || this.#framing !== "chunked") {
        return only;
      }
    }
    return this.#gathered(tail);
  }

  /** Head, data and tail in one buffer; under chunked framing the data is one chunk. */
  #gathered(tail: string): Buffer {
    const chunk = this.#framing === "chunked" && this.#pieceBytes > 0;
    const before = chunk ? `${this.#headText}${this.#pieceBytes.toString(16)}\r\n` : this.#headText;
    const after = chunk ? `\r\n${tail}` : tail;
    const bytes = Buffer.allocUnsafe(before.length + this.#pieceBytes + after.length);
    let at = bytes.write(before, 0, "latin1");
    for (const piece of this.#pieces) {
      at += piece.copy(bytes, at);
    }
    bytes.write(after, at, "latin1");
    return bytes;
  }

  #forget(): void {
    this.#headText = "";
    this.#pieces = [];
    this.#pieceBytes = 0;
  }

  #refuseAfterEnd(): void {
    if (this.#ended) {
      throw unwritable("Message already ended");
    }
  }
}

function connectionText(head: ResponseHead, framing: Framing, options: ResponseOptions): string {
  if (head.status < 200) {
    return hasUpgrade(head.fields) ? "Connection: Upgrade\r\n" : "";
  }
  const elements: string[] = [];
  if (options.close || framing.kind === "close") {
    elements.push("close");
  } else if (options.minor === 0) {
    elements.push("keep-alive");
  }
  if (hasUpgrade(head.fields)) {
    elements.push("Upgrade");
  }
  return elements.length === 0 ? "" : `Connection: ${elements.join(", ")}\r\n`;
}
