/** Masks secrets in a body that comes in pieces, byte for byte. Pure: pieces in, pieces out. */
import type { Needles } from "./needles.ts";

const STAR = 0x2a;
const NOTHING = Buffer.alloc(0);

/** As many bytes come out as went in; what may be the beginning of a secret waits for the next piece. */
export class BodyScrubber {
  readonly #needles: Needles;
  /** What waits, as it came. */
  #held: Buffer = NOTHING;
  /** How much of that belongs to a secret already. */
  #masked = 0;

  constructor(needles: Needles) {
    this.#needles = needles;
  }

  /** What can go now; it may be empty. The piece itself is never changed. */
  push(piece: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    return this.#mask(bytes, this.#needles.unfinished(bytes));
  }

  /** The rest, at the end of the body. */
  flush(): Buffer {
    return this.#mask(this.#held, this.#held.length);
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
