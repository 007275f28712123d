/** Masks secrets in a body that comes in pieces, byte for byte. Pure: pieces in, pieces out. */
import type { Needles } from "./needles.ts";

const STAR = 0x2a;
const NOTHING = Buffer.alloc(0);

/**
 * As many bytes come out as went in; what may be the beginning of a secret waits for the next piece. Of a part of a
 * body, what its ends hold of a secret that lies across them goes too.
 */
export class BodyScrubber {
  readonly #needles: Needles;
  readonly #part: boolean;
  /** The beginning of a part has been looked at. */
  #begun: boolean;
  /** What waits, as it came. */
  #held: Buffer = NOTHING;
  /** How much of that belongs to a secret already. */
  #masked = 0;

  constructor(needles: Needles, part = false) {
    this.#needles = needles;
    this.#part = part;
    this.#begun = !part;
  }

  /** What can go now; it may be empty. The piece itself is never changed. */
  push(piece: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    if (!this.#begun && bytes.length < this.#needles.longest) {
      this.#held = bytes;
      return NOTHING;
    }
    this.#begin(bytes);
    return this.#mask(bytes, this.#needles.unfinished(bytes));
  }

  /** The rest, at the end of the body. */
  flush(): Buffer {
    const rest = this.#held;
    this.#begin(rest);
    const masked = this.#mask(rest, rest.length);
    const end = this.#part ? this.#needles.trailing(rest) : rest.length;
    return end === rest.length ? masked : Buffer.from(masked).fill(STAR, end);
  }

  #begin(bytes: Buffer): void {
    if (!this.#begun) this.#masked = this.#needles.leading(bytes);
    this.#begun = true;
  }

  #mask(bytes: Buffer, length: number): Buffer {
    let copy: Buffer | undefined;
    let masked = this.#masked;
    if (masked > 0) copy = Buffer.from(bytes).fill(STAR, 0, masked);
    this.#needles.each(bytes, (start, end) => {
      copy = (copy ?? Buffer.from(bytes)).fill(STAR, start, end);
      masked = Math.max(masked, end);
    });
    // What is held keeps its own bytes: another secret may begin among them.
    this.#held = bytes.subarray(length);
    this.#masked = Math.max(0, masked - length);
    return (copy ?? bytes).subarray(0, length);
  }
}
