/** Body stages that search an answer: at once where it is not coded, behind decoders where it is. */
import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from "node:zlib";
import type { FieldLines } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { BodySink } from "../model/inbound.ts";
import type { BodyStage, Room, StagedBody, StageEvents } from "../model/leg.ts";

/** Takes a body piece by piece and gives back what may go on. */
export interface Scrubber {
  push(piece: Buffer): Buffer;
  flush(): Buffer;
}

/** 8 MiB, the most that RFC 9659 lets a content coding ask for; the library takes 128 MiB of each answer. */
const ZSTD_WINDOW_LOG = 23;

type Coding = "gzip" | "deflate" | "br" | "zstd";

/** `decode`: the codings to undo, the outermost first, in `room`. What comes out is identity-coded. */
export function scrubStage(scrubber: Scrubber, decode: readonly Coding[], room: () => Room): BodyStage {
  return decode.length === 0
    ? (next, events) => direct(scrubber, next, events)
    : (next, events) => new Decoding({ scrubber, decode, room: room() }, next, events);
}

function direct(scrubber: Scrubber, next: BodySink, events: StageEvents): StagedBody {
  return {
    write(bytes) {
      const passed = scrubber.push(bytes);
      return passed.length === 0 || next.write(passed);
    },
    end(trailers) {
      const rest = scrubber.flush();
      if (rest.length > 0) next.write(rest);
      next.end(trailers);
    },
    drained: () => events.drained(),
    close: () => undefined,
  };
}

interface Parts {
  readonly scrubber: Scrubber;
  readonly decode: readonly Coding[];
  readonly room: Room;
}

/** What a decoder keeps of what it made, at most: a window (RFC 7932 section 9.1, RFC 9659, RFC 1951). */
const WINDOWS: Readonly<Record<Coding, number>> = {
  br: 16_777_216,
  zstd: 8_388_608,
  gzip: 32_768,
  deflate: 32_768,
};

class Decoding implements StagedBody {
  readonly #scrubber: Scrubber;
  readonly #next: BodySink;
  readonly #events: StageEvents;
  readonly #codings: readonly Coding[];
  readonly #room: Room;
  #decoders: readonly Transform[] = [];
  #trailers: FieldLines = [];
  #closed = false;
  #some = false;

  constructor({ scrubber, decode, room }: Parts, next: BodySink, events: StageEvents) {
    this.#scrubber = scrubber;
    this.#codings = decode;
    this.#room = room;
    this.#next = next;
    this.#events = events;
  }

  write(bytes: Buffer): boolean {
    if (this.#closed || bytes.length === 0) return true;
    this.#some = true;
    if (this.#decoders.length === 0) this.#open(bytes);
    return this.#decoders[0]?.write(bytes) ?? true;
  }

  end(trailers: FieldLines): void {
    this.#trailers = trailers;
    // Nothing at all is what some origins send for an empty body, whatever its coding.
    if (!this.#some) this.#next.end(trailers);
    else this.#decoders[0]?.end();
  }

  drained(): void {
    if (!this.#closed) this.#decoders.at(-1)?.resume();
  }

  close(): void {
    this.#closed = true;
    this.#room.release();
    for (const decoder of this.#decoders) decoder.destroy();
  }

  /** A decoder holds no more than its window and one piece: what it makes is taken as fast as the client takes it. */
  #open(first: Buffer): void {
    this.#decoders = this.#codings.map((coding, index) => decoderOf(coding, index === 0 ? first : undefined));
    for (const [index, decoder] of this.#decoders.entries()) {
      decoder.on("error", () => this.#fail("The answer's content coding is broken"));
      this.#count(decoder, WINDOWS[this.#codings[index] as Coding]);
      const following = this.#decoders[index + 1];
      if (following !== undefined) decoder.pipe(following);
    }
    this.#decoders[0]?.on("drain", () => {
      if (!this.#closed) this.#events.drained();
    });
    const last = this.#decoders.at(-1);
    last?.on("data", (bytes: Buffer) => {
      if (this.#closed) return;
      const passed = this.#scrubber.push(bytes);
      if (passed.length > 0 && !this.#next.write(passed)) last.pause();
    });
    last?.on("end", () => this.#finish());
  }

  #finish(): void {
    if (this.#closed) return;
    const rest = this.#scrubber.flush();
    if (rest.length > 0) this.#next.write(rest);
    this.#next.end(this.#trailers);
  }

  /** As much as it made so far, up to its window. */
  #count(decoder: Transform, window: number): void {
    let kept = 0;
    decoder.on("data", (bytes: Buffer) => {
      const more = Math.min(bytes.length, window - kept);
      if (more === 0 || this.#closed) return;
      kept += more;
      if (!this.#room.take(more)) this.#fail("Too much is being decoded for this sandbox");
    });
  }

  #fail(message: string): void {
    if (this.#closed) return;
    this.close();
    this.#events.failed(new Failure("E_UPSTREAM_PROTOCOL", "upstream", message));
  }
}

function decoderOf(coding: Coding, first: Buffer | undefined): Transform {
  switch (coding) {
    case "gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } });
    case "deflate":
      // RFC 9110 section 8.4.1.2: it is to have a zlib header, and some origins leave it out.
      return first === undefined || ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
  }
}
