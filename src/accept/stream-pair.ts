/** Two streams that are each other's far end, in this process: a connection that nobody dialled. */
import { Duplex } from "node:stream";

/** Bytes that one end holds until they are read. */
const HIGH_WATER_MARK = 65_536;

export function createStreamPair(): readonly [StreamEnd, StreamEnd] {
  const one = new StreamEnd();
  const other = new StreamEnd();
  one.join(other);
  other.join(one);
  return [one, other];
}

export class StreamEnd extends Duplex {
  #far: StreamEnd | undefined = undefined;
  /** Tells the far end that there is room again. */
  #taken: (() => void) | undefined = undefined;

  constructor() {
    super({ highWaterMark: HIGH_WATER_MARK });
    // From birth to death: what goes wrong is heard at `close`.
    this.on("error", () => {});
  }

  join(far: StreamEnd): void {
    this.#far = far;
  }

  /** Both ends still take bytes. */
  get whole(): boolean {
    return this.writable && this.readable && this.#far?.writable === true && this.#far.readable;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (this.#far === undefined) done();
    else this.#far.#receive(chunk, done);
  }

  override _read(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#far?.push(null);
    done();
  }

  /** An end that leaves before it said so takes the other one with it: what was cut must not look whole. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this._read();
    if (!this.writableFinished) this.#far?.destroy();
    done(error);
  }

  /** A socket has these; here there is nothing to set. */
  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  /** What nobody reads any more is let go, as a reader who lingers does. */
  #receive(chunk: Buffer, done: () => void): void {
    if (this.destroyed || this.readableEnded || this.push(chunk)) done();
    else this.#taken = done;
  }
}
