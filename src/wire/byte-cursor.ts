/** Walks the vectors of a TLS message (RFC 8446 section 3.4). Reading past the end fails, never wraps. Pure. */
import { Failure } from "../model/failure.ts";

export class ByteCursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length;
  }

  uint8(): number {
    return this.take(1).readUInt8(0);
  }

  uint16(): number {
    return this.take(2).readUInt16BE(0);
  }

  /** A vector with a length of one byte. */
  vector8(): Buffer {
    return this.take(this.uint8());
  }

  /** A vector with a length of two bytes. */
  vector16(): Buffer {
    return this.take(this.uint16());
  }

  /** A view of the next `length` bytes. */
  take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) {
      throw new Failure("E_BAD_HELLO", "client", "ClientHello cut short inside");
    }
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  /** Bytes left over would be read by somebody else as something else. */
  end(): void {
    if (!this.ended) {
      throw new Failure("E_BAD_HELLO", "client", "ClientHello with bytes left over");
    }
  }
}
