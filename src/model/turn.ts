/** One turn of the event loop: what is written in it leaves together at its end. Types only. */

/** A socket, as far as holding its writes back goes. */
export interface Corkable {
  readonly writableCorked: number;
  cork(): void;
  uncork(): void;
}

export interface Turn {
  /** What is written to `socket` from now on leaves at the end of this turn. */
  hold(socket: Corkable): void;
}
