/** Bytes that come in pieces and are looked at whole. Pure. */

const NOTHING = Buffer.alloc(0);

/**
 * Puts a piece behind what is held of a stream, in a buffer that grows in steps: a peer that sends byte by byte (over
 * TLS each record is a piece) must not make each byte cost a copy of all before it.
 */
export class Appender {
  #room: Buffer = NOTHING;
  /** How much of the room was given out. */
  #used = 0;

  /** `held` may be what this gave, or the end of it; its bytes are never written again. */
  append(held: Buffer, piece: Buffer): Buffer {
    if (held.length === 0) return piece;
    if (!this.#endsWith(held) || this.#room.length - this.#used < piece.length) {
      this.#room = Buffer.allocUnsafe(2 * (held.length + piece.length));
      this.#used = held.copy(this.#room);
    }
    const from = this.#used - held.length;
    this.#used += piece.copy(this.#room, this.#used);
    return this.#room.subarray(from, this.#used);
  }

  /** What was given lives as long as whoever has it; without this its room would live as long as the stream. */
  forget(): void {
    this.#room = NOTHING;
    this.#used = 0;
  }

  #endsWith(held: Buffer): boolean {
    const end = this.#room.byteOffset + this.#used;
    return this.#used > 0 && held.buffer === this.#room.buffer && held.byteOffset + held.length === end;
  }
}
