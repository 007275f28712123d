/** Reads one message body off the wire: counts, de-chunks and keeps every byte of the next message out. Pure. */
import type { Field, Framing } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { parseFieldLines } from "./field-lines.ts";
import { protocolFailure, type Side } from "./protocol-failure.ts";
import { isTrailer } from "./trailers.ts";

export type BodyReaderLimits = Pick<Limits, "chunk_extension_bytes" | "trailer_bytes" | "head_fields">;

/** Where the reader stands. `length` and `close` are whole bodies, the rest are places in a chunked one. */
type Place =
  | "length"
  | "close"
  | "size"
  | "extension"
  | "size-lf"
  | "data"
  | "data-cr"
  | "data-lf"
  | "trailers"
  | "done"
  | "broken";

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
/** 13 hex digits are 52 bits: the size is exact in a double. */
const SIZE_DIGITS = 13;
const NO_TRAILERS: readonly Field[] = [];
/** RFC 9112 section 7.1.1, without the blanks it tolerates. */
const EXTENSIONS =
  /^(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)+\r\n$/;

export class BodyReader {
  /** Fields after a chunked body, without those that may not stand there. */
  trailers: readonly Field[] = NO_TRAILERS;
  /** A byte of the body was read. */
  started = false;

  readonly #limits: BodyReaderLimits;
  readonly #side: Side;
  readonly #framing: Framing["kind"];
  #place: Place;
  /** Bytes left of the body or of the chunk; while a size line is read, the size so far. */
  #left = 0;
  #digits = 0;
  /** Bytes of extensions so far, over the whole body: each line alone could be short (CVE-2024-22019). */
  #extensionBytes = 0;
  /** The extension line or the trailer section so far, as these may come in any pieces. */
  #text = "";
  /** Of the trailer line that is being read. */
  #lineBytes = 0;
  /** The piece before ended in CR. */
  #afterCr = false;

  /** `fault` is whose body it is: failures carry that side's code. */
  constructor(framing: Framing, limits: BodyReaderLimits, fault: Side) {
    this.#limits = limits;
    this.#side = fault;
    this.#framing = framing.kind;
    this.#place = firstPlace(framing);
    if (framing.kind === "length") {
      this.#left = framing.length;
    }
  }

  /** The body is whole; the bytes that follow belong to the next message. */
  get done(): boolean {
    return this.#place === "done";
  }

  /**
   * Reads from `start` and returns the index of the first byte that is not of this body. `sink` gets decoded data as
   * views of `bytes`. Throws on malformed chunks, and on every call after that.
   */
  read(bytes: Buffer, start: number, sink: (data: Buffer) => void): number {
    let at = start;
    while (at < bytes.length && this.#place !== "done") {
      this.started = true;
      at = this.#step(bytes, at, sink);
    }
    return at;
  }

  /** The peer ended its stream. Throws unless the body is whole or ends in just this way. */
  eof(): void {
    if (this.#place === "close") {
      this.#place = "done";
    }
    if (this.#place !== "done") {
      throw this.#broken("Body cut short");
    }
  }

  #step(bytes: Buffer, at: number, sink: (data: Buffer) => void): number {
    switch (this.#place) {
      case "size":
        return this.#readSize(bytes, at);
      case "extension":
        return this.#readExtension(bytes, at);
      case "size-lf":
        return this.#endSizeLine(bytes[at], at);
      case "data-cr":
        return this.#expect(bytes[at] === CR, "data-lf", at);
      case "data-lf":
        return this.#expect(bytes[at] === LF, "size", at);
      case "trailers":
        return this.#readTrailers(bytes, at);
      case "close":
        sink(bytes.subarray(at));
        return bytes.length;
      case "length":
      case "data":
        return this.#readData(bytes, at, sink);
      default:
        throw this.#broken("Body already malformed");
    }
  }

  #readData(bytes: Buffer, at: number, sink: (data: Buffer) => void): number {
    const end = Math.min(bytes.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) {
      this.#place = this.#framing === "chunked" ? "data-cr" : "done";
    }
    sink(bytes.subarray(at, end));
    return end;
  }

  #readSize(bytes: Buffer, start: number): number {
    let at = start;
    for (; at < bytes.length; at += 1) {
      const digit = hexDigit(Number(bytes[at]));
      if (digit < 0) {
        return this.#endSize(bytes[at], at);
      }
      this.#digits += 1;
      this.#left = this.#left * 16 + digit;
      if (this.#digits > SIZE_DIGITS) {
        throw this.#broken("Chunk size too long");
      }
    }
    return at;
  }

  #endSize(byte: number | undefined, at: number): number {
    if (this.#digits === 0 || (byte !== CR && byte !== SEMICOLON)) {
      throw this.#broken("Malformed chunk size");
    }
    if (byte === SEMICOLON) {
      this.#place = "extension";
      return at;
    }
    this.#place = "size-lf";
    return at + 1;
  }

  /** To the line's LF: a bare one must not be waited past. */
  #readExtension(bytes: Buffer, at: number): number {
    const lf = bytes.indexOf(LF, at);
    const end = lf < 0 ? bytes.length : lf + 1;
    this.#extensionBytes += end - at;
    if (this.#extensionBytes > this.#limits.chunk_extension_bytes) {
      throw this.#broken("Chunk extensions too long", 413);
    }
    this.#text += bytes.toString("latin1", at, end);
    if (lf < 0) {
      return end;
    }
    if (!EXTENSIONS.test(this.#text)) {
      throw this.#broken("Malformed chunk extension");
    }
    this.#text = "";
    return this.#endSizeLine(LF, lf);
  }

  #endSizeLine(byte: number | undefined, at: number): number {
    this.#digits = 0;
    return this.#expect(byte === LF, this.#left === 0 ? "trailers" : "data", at);
  }

  #expect(met: boolean, next: Place, at: number): number {
    if (!met) {
      throw this.#broken("Chunk line without its CRLF");
    }
    this.#place = next;
    return at + 1;
  }

  /** Line by line, so that not one byte past the empty line is taken (E18). */
  #readTrailers(bytes: Buffer, at: number): number {
    const lf = bytes.indexOf(LF, at);
    const end = lf < 0 ? bytes.length : lf + 1;
    this.#lineBytes += end - at;
    if (this.#text.length + end - at > this.#limits.trailer_bytes) {
      throw this.#broken("Trailers too long", 431);
    }
    this.#text += bytes.toString("latin1", at, end);
    if (lf >= 0) {
      this.#endTrailerLine(lf > at ? bytes[lf - 1] === CR : this.#afterCr);
    } else {
      this.#afterCr = bytes[end - 1] === CR;
    }
    return end;
  }

  #endTrailerLine(afterCr: boolean): void {
    if (!afterCr) {
      throw this.#broken("Trailer line without its CRLF");
    }
    if (this.#lineBytes === 2) {
      this.#endTrailers();
    }
    this.#lineBytes = 0;
    this.#afterCr = false;
  }

  #endTrailers(): void {
    const text = this.#text;
    this.#place = "broken";
    if (text.length > 2) {
      this.trailers = parseFieldLines(text, 0, this.#limits.head_fields, this.#side).filter(isTrailer);
    }
    this.#place = "done";
    this.#text = "";
  }

  #broken(message: string, status?: number) {
    this.#place = "broken";
    return protocolFailure(this.#side, message, status);
  }
}

function firstPlace(framing: Framing): Place {
  switch (framing.kind) {
    case "chunked":
      return "size";
    case "close":
      return "close";
    case "length":
      return framing.length === 0 ? "done" : "length";
    case "none":
      return "done";
  }
}

/** The digit's value, or -1. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) {
    return byte - 48;
  }
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
