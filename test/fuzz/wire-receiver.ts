/** Drives the codec as a connection would, over bytes that arrive in pieces. */
import type { Field, Framing } from "../../src/model/exchange.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { BodyReader } from "../../src/wire/body-reader.ts";
import { findHeadEnd } from "../../src/wire/find-head.ts";
import { parseRequestHead } from "../../src/wire/request-head.ts";
import { parseResponseHead } from "../../src/wire/response-head.ts";

export interface Message {
  /** Method and target, or status and phrase. */
  readonly start: readonly [string, string];
  readonly fields: readonly Field[];
  readonly framing: Framing;
  readonly trailers: readonly Field[];
  readonly body: string;
}

type Head = Pick<Message, "start" | "fields" | "framing">;

/** Reads messages until the pieces end. Throws what the codec throws; a message cut short throws too. */
export function receive(side: "client" | "upstream", pieces: readonly Buffer[]): Message[] {
  const receiver = new Receiver(side);
  for (const piece of pieces) {
    receiver.take(piece);
  }
  receiver.end();
  return receiver.messages;
}

class Receiver {
  readonly messages: Message[] = [];
  readonly #side: "client" | "upstream";
  #bytes = Buffer.alloc(0);
  #scanned = 0;
  #head: Head | undefined;
  #reader: BodyReader | undefined;
  #body = "";

  constructor(side: "client" | "upstream") {
    this.#side = side;
  }

  take(piece: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    while (this.#bytes.length > 0 && this.#step()) {}
  }

  end(): void {
    this.#reader?.eof();
    this.#finish();
    if (this.#bytes.length > 0) {
      throw new Error("Head cut short");
    }
  }

  /** False where more bytes are needed. */
  #step(): boolean {
    if (this.#reader === undefined) {
      const end = findHeadEnd(this.#bytes, this.#scanned);
      this.#scanned = end < 0 ? this.#bytes.length - 3 : 0;
      if (end < 0) {
        return false;
      }
      this.#head = readHead(this.#side, this.#bytes, end);
      this.#reader = new BodyReader(this.#head.framing, DEFAULT_LIMITS, this.#side);
      this.#bytes = this.#bytes.subarray(end);
    }
    const next = this.#reader.read(this.#bytes, 0, (data) => {
      this.#body += data.toString("latin1");
    });
    this.#bytes = this.#bytes.subarray(next);
    this.#finish();
    return this.#reader === undefined;
  }

  #finish(): void {
    if (this.#head !== undefined && this.#reader?.done) {
      this.messages.push({ ...this.#head, trailers: this.#reader.trailers, body: this.#body });
      this.#reader = undefined;
      this.#body = "";
    }
  }
}

function readHead(side: "client" | "upstream", bytes: Buffer, end: number): Head {
  if (side === "client") {
    const { method, rawTarget, fields, framing } = parseRequestHead(bytes, end, DEFAULT_LIMITS);
    return { start: [method, rawTarget], fields, framing };
  }
  const { status, phrase, fields, framing } = parseResponseHead(bytes, end, "GET", DEFAULT_LIMITS);
  return { start: [String(status), phrase], fields, framing };
}
