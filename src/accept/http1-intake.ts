/** What a client has sent on its HTTP/1.1 connection and nobody has taken yet: heads come out of it, and bodies. Pure. */
import { Appender } from "../base/appender.ts";
import type { FieldLines, Framing, Scheme } from "../model/exchange.ts";
import type { Limits } from "../model/limits.ts";
import { BodyReader } from "../wire/body-reader.ts";
import { findHeadEnd } from "../wire/find-head.ts";
import { type ParsedRequest, parseRequestHead } from "../wire/request-head.ts";
import { type Claimed, claimsOf } from "./claims.ts";

export interface IntakeHead {
  readonly request: ParsedRequest;
  readonly claimed: Claimed;
}

const NOTHING = Buffer.alloc(0);

export class Http1Intake {
  readonly #limits: Limits;
  readonly #scheme: Scheme;
  readonly #appender = new Appender();
  #bytes: Buffer = NOTHING;
  /** Where the search for the end of a head goes on. */
  #scanned = 0;
  #body: BodyReader | undefined = undefined;

  constructor(limits: Limits, scheme: Scheme) {
    this.#limits = limits;
    this.#scheme = scheme;
  }

  /** Bytes that wait. */
  get waiting(): number {
    return this.#bytes.length;
  }

  /** The present request has a body, and its end has not been read. */
  get unfinished(): boolean {
    return this.#body?.done === false;
  }

  hold(bytes: Buffer): void {
    this.#bytes = this.#appender.append(this.#bytes, bytes);
  }

  /** All that waits; from then on nothing does. */
  take(): Buffer {
    const bytes = this.#bytes;
    this.#bytes = NOTHING;
    this.#appender.forget();
    return bytes;
  }

  /** The next head, whose body is then the one to be read; undefined until it is whole. Throws a Failure of the client's. */
  head(): IntakeHead | undefined {
    const bytes = this.#bytes;
    let end = findHeadEnd(bytes, this.#scanned);
    if (end < 0 && bytes.length <= this.#limits.head_bytes) {
      this.#scanned = Math.max(0, bytes.length - 3);
      return undefined;
    }
    // What is too long without an end is parsed for the answer that says so.
    if (end < 0) end = bytes.length;
    const request = parseRequestHead(bytes, end, this.#limits);
    const claimed = claimsOf(request, this.#scheme);
    this.#bytes = bytes.length === end ? NOTHING : bytes.subarray(end);
    // A connection that idles must not keep the room of its last head.
    this.#appender.forget();
    this.#scanned = 0;
    this.#body = this.#readerOf(request.framing);
    return { request, claimed };
  }

  /**
   * Reads on in the present body, and holds what follows it. The trailers once it is whole, else undefined. Throws a
   * Failure of the client's where it is malformed.
   */
  body(bytes: Buffer, data: (bytes: Buffer) => void): FieldLines | undefined {
    const body = this.#body;
    if (body === undefined || body.done) return undefined;
    const next = body.read(bytes, 0, data);
    if (next < bytes.length) this.hold(bytes.subarray(next));
    return body.done ? body.trailers : undefined;
  }

  #readerOf(framing: Framing): BodyReader | undefined {
    return framing.kind === "none" ? undefined : new BodyReader(framing, this.#limits, "client");
  }
}
