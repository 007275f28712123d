/** Puts a run of tiny pieces together: what comes byte by byte must not lie in a queue byte by byte. */
import { Appender } from "../base/appender.ts";
import type { Corkable, Turn } from "../model/turn.ts";

/** Below this a piece takes more memory for itself than for its bytes: a TLS record or a DATA frame may hold one. */
const TINY = 256;
/** Tiny pieces in a row that pass at once, as those of an ordinary exchange do. */
const RUN = 16;
/** Gathered bytes that wait no longer. */
const FULL = 16_384;
const NOTHING = Buffer.alloc(0);

export class TinyPieces implements Corkable {
  writableCorked = 0;
  readonly #turn: Turn;
  readonly #write: (bytes: Buffer) => void;
  #run = 0;
  #gathered: Buffer = NOTHING;
  #appender: Appender | undefined = undefined;

  /** What is gathered goes to `write` at the end of the turn at the latest, in order with all else. */
  constructor(turn: Turn, write: (bytes: Buffer) => void) {
    this.#turn = turn;
    this.#write = write;
  }

  take(bytes: Buffer): void {
    this.#run = bytes.length < TINY ? this.#run + 1 : 0;
    if (this.#run <= RUN) {
      this.flush();
      this.#write(bytes);
      return;
    }
    this.#appender ??= new Appender();
    this.#gathered = this.#appender.append(this.#gathered, bytes);
    if (this.#gathered.length >= FULL) this.flush();
    else this.#turn.hold(this);
  }

  flush(): void {
    const gathered = this.#gathered;
    if (gathered.length === 0) return;
    this.#gathered = NOTHING;
    this.#appender = undefined;
    this.#write(gathered);
  }

  cork(): void {
    this.writableCorked = 1;
  }

  uncork(): void {
    this.writableCorked = 0;
    this.flush();
  }
}
