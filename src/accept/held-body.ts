/** Holds a request's body until it is whole, for what has to be known before its first byte leaves. */
import { Appender } from "../base/appender.ts";
import type { Framing, ResponseHead } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Inbound, InboundEvents, Raw } from "../model/inbound.ts";

export type Held =
  | { readonly kind: "held"; readonly inbound: Inbound; readonly body: Buffer }
  | { readonly kind: "over" };

export interface Holding {
  /** Bytes. */
  readonly max: number;
  /** Whether so many bytes more may be kept. */
  readonly take: (bytes: number) => boolean;
  /** Milliseconds without a byte. */
  readonly timeout: number;
  /** The client waits for a word before it sends. */
  readonly expectContinue: boolean;
}

const NOTHING = Buffer.alloc(0);

/** Rejects with a Failure where the client goes away, or falls silent. Trailers are left out. */
export function holdBody(inbound: Inbound, { max, take, timeout, expectContinue }: Holding): Promise<Held> {
  return new Promise((resolve, reject) => {
    // Of one piece each byte would take a hundred.
    const appender = new Appender();
    let bytes: Buffer = NOTHING;
    let later: InboundEvents | undefined;
    let lost: Failure | undefined;
    let over = false;
    const timer = setTimeout(() => {
      settle(() =>
        reject(new Failure("E_TIMEOUT", "client", "The body did not come in time", { status: 408 })),
      );
    }, timeout);
    function settle(step: () => void): void {
      over = true;
      clearTimeout(timer);
      step();
    }
    inbound.start({
      data(piece) {
        if (over) return;
        timer.refresh();
        bytes = appender.append(bytes, piece);
        if (bytes.length > max || !take(piece.length)) settle(() => resolve({ kind: "over" }));
      },
      end() {
        if (over) return;
        const body = Buffer.from(bytes);
        // These listeners live as long as the exchange, and the room is larger than the body.
        bytes = NOTHING;
        appender.forget();
        const replay = new HeldInbound(inbound, body, (events) => {
          later = events;
          return lost;
        });
        settle(() => resolve({ kind: "held", inbound: replay, body }));
      },
      drained: () => later?.drained(),
      gone(failure) {
        lost = failure;
        later?.gone(failure);
        if (!over) settle(() => reject(failure));
      },
    });
    if (expectContinue) inbound.inform({ status: 100, phrase: "Continue", minor: 1, fields: [] });
  });
}

/** The same exchange, whose body is here already. It may be started again: what is here is not used up. */
class HeldInbound implements Inbound {
  readonly protocol: Inbound["protocol"];
  readonly head: Inbound["head"];
  readonly framing: Framing;
  readonly #inbound: Inbound;
  readonly #body: Buffer;
  readonly #listen: (events: InboundEvents) => Failure | undefined;
  #started: InboundEvents | undefined = undefined;
  #onLost: (() => void) | undefined = undefined;
  readonly #waiting: InboundEvents = {
    data: () => undefined,
    end: () => undefined,
    drained: () => undefined,
    gone: () => this.#onLost?.(),
  };

  constructor(inbound: Inbound, body: Buffer, listen: (events: InboundEvents) => Failure | undefined) {
    this.protocol = inbound.protocol;
    this.head = inbound.head;
    this.framing = { kind: "length", length: body.length };
    this.#inbound = inbound;
    this.#body = body;
    this.#listen = listen;
    this.#listen(this.#waiting);
  }

  get responded(): number | undefined {
    return this.#inbound.responded;
  }

  start(events: InboundEvents): void {
    this.#started = events;
    const lost = this.#listen(events);
    if (lost !== undefined) {
      events.gone(lost);
      return;
    }
    setImmediate(() => {
      if (this.#started !== events) return;
      if (this.#body.length > 0) events.data(this.#body);
      events.end([]);
    });
  }

  whenLost(callback: () => void): void {
    this.#onLost = callback;
    if (this.#listen(this.#waiting) !== undefined) callback();
  }

  /** It is all here: there is nothing to hold back. */
  pause(): void {}

  resume(): void {}

  closeAfter(): void {
    this.#inbound.closeAfter();
  }

  inform(head: ResponseHead): void {
    this.#inbound.inform(head);
  }

  respond(head: ResponseHead, framing: Framing): void {
    this.#inbound.respond(head, framing);
  }

  write(bytes: Buffer): boolean {
    return this.#inbound.write(bytes);
  }

  end(trailers: Parameters<Inbound["end"]>[0]): void {
    this.#inbound.end(trailers);
  }

  abort(reset?: number): void {
    this.#inbound.abort(reset);
  }

  takeOver(head: ResponseHead): Raw {
    return this.#inbound.takeOver(head);
  }
}
