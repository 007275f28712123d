/** Moves one exchange between its two ends, with back-pressure, and makes no cut body look whole. */
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { FieldLines, Framing, ResponseHead } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { BodySink, Inbound, InboundEvents, OutboundEvents, Upstream } from "../model/inbound.ts";
import type { Leg, Outcome, StagedBody } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";
import type { Turn } from "../model/turn.ts";
import { validateSwitch } from "../wire/upgrade.ts";
import { type Splice, splice } from "./splice.ts";
import { TinyPieces } from "./tiny-pieces.ts";

export interface Relaying {
  /** Resolves once, when nothing more of this exchange moves. Never rejects. */
  readonly done: Promise<Outcome>;
  /** Ends it now; `done` tells of `failure`. */
  cut(failure: Failure): void;
}

export interface RelaySurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
}

/** How long a client that waits for `100 Continue` waits for a silent upstream. */
const CONTINUE_MS = 1_000;
/** RFC 9113 section 7. */
const NO_ERROR = 0;

export function relay(inbound: Inbound, upstream: Upstream, leg: Leg, around: RelaySurroundings): Relaying {
  const running = new Relay(inbound, upstream, leg, around);
  running.begin();
  return running;
}

class Relay implements Relaying, Expiring {
  deadline = Number.POSITIVE_INFINITY;
  slot: number | undefined = undefined;
  readonly done: Promise<Outcome>;
  readonly #inbound: Inbound;
  readonly #outbound: Upstream;
  readonly #leg: Leg;
  readonly #around: RelaySurroundings;
  #resolve: (outcome: Outcome) => void = () => {};
  #splice: Splice | undefined = undefined;
  #status: number | undefined = undefined;
  #bytesOut = 0;
  #bytesIn = 0;
  #requestWhole = false;
  /** What changes the bodies, where anything does. */
  #requestStage: StagedBody | undefined = undefined;
  #responseStage: StagedBody | undefined = undefined;
  #requestPieces: TinyPieces | undefined = undefined;
  #responsePieces: TinyPieces | undefined = undefined;
  /** The upstream said its last word, and its connection may be another exchange's by now. */
  #upstreamDone = false;
  #answerEnded = false;
  /** The client has all of the answer, and may go on. */
  #answerWhole = false;
  #over = false;
  #continueTimer: NodeJS.Timeout | undefined = undefined;

  constructor(inbound: Inbound, outbound: Upstream, leg: Leg, around: RelaySurroundings) {
    this.#inbound = inbound;
    this.#outbound = outbound;
    this.#leg = leg;
    this.#around = around;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  begin(): void {
    this.#requestStage = this.#leg.requestBody?.(this.#upstreamSink(), {
      drained: () => this.#inbound.resume(),
      failed: (failure) => this.cut(failure),
    });
    this.#outbound.send(this.#leg.head, this.#leg.framing, this.#upstreamEvents());
    this.#inbound.start(this.#clientEvents());
    if (!this.#leg.expectContinue || this.#requestWhole) return;
    this.#continueTimer = setTimeout(() => this.#goAhead(), CONTINUE_MS);
    this.#continueTimer.unref();
  }

  #clientEvents(): InboundEvents {
    return {
      data: (bytes) => {
        this.#bytesOut += bytes.length;
        this.#requestPieces ??= new TinyPieces(this.#around.turn, this.#sendOn);
        this.#requestPieces.take(bytes);
      },
      end: (trailers) => {
        this.#requestWhole = true;
        this.#requestPieces?.flush();
        const to = this.#requestStage ?? this.#outbound;
        if (this.#over) return;
        to.end(this.#leg.requestTrailers(trailers));
        if (this.#answerWhole) this.#settle({ kind: "relayed", ...this.#counts() });
      },
      drained: () => {
        if (this.#over) return;
        if (this.#responseStage !== undefined) this.#responseStage.drained();
        else this.#outbound.resume();
      },
      gone: (failure) => {
        if (this.#over) return;
        if (!this.#upstreamDone) this.#outbound.abort(failure.reset);
        this.#settle({ kind: "failed", failure, ...this.#counts() });
      },
    };
  }

  readonly #sendOn = (bytes: Buffer): void => {
    const to = this.#requestStage ?? this.#outbound;
    if (!this.#over && !to.write(bytes)) this.#inbound.pause();
  };

  readonly #sendBack = (bytes: Buffer): void => {
    const to = this.#responseStage ?? this.#inbound;
    if (!this.#over && !to.write(bytes) && !this.#upstreamDone) this.#outbound.pause();
  };

  #upstreamEvents(): OutboundEvents {
    return {
      informed: (head) => {
        // Another interim answer leaves the client waiting for its 100.
        if (head.status === 100) clearTimeout(this.#continueTimer);
        this.#inbound.inform(this.#leg.response(head));
      },
      head: (head, framing) => this.#takeHead(head, framing),
      data: (bytes) => {
        this.#bytesIn += bytes.length;
        this.#responsePieces ??= new TinyPieces(this.#around.turn, this.#sendBack);
        this.#responsePieces.take(bytes);
      },
      end: (trailers) => {
        this.#answerEnded = true;
        // One side of a WebSocket's stream: the other is still ours.
        this.#upstreamDone = this.#requestWhole || this.#leg.extended !== true;
        this.#responsePieces?.flush();
        const passed = this.#leg.responseTrailers(trailers);
        if (this.#responseStage === undefined) this.#finish(passed);
        else if (!this.#over) this.#responseStage.end(passed);
      },
      drained: () => {
        if (this.#over) return;
        if (this.#requestStage !== undefined) this.#requestStage.drained();
        else this.#inbound.resume();
      },
      failed: (failure, untouched) => {
        if (this.#over) return;
        if (this.#answerWhole && failure.reset === NO_ERROR) {
          this.#letGo();
          return;
        }
        const kind = this.#mayTryAgain(untouched) ? "stale" : "failed";
        this.#settle({ kind, failure, ...this.#counts() });
      },
    };
  }

  #takeHead(head: ResponseHead, framing: Framing): void {
    clearTimeout(this.#continueTimer);
    this.#status = head.status;
    if (head.status !== 101) {
      this.#respond(head, framing);
      return;
    }
    if (this.#leg.upgrade && validateSwitch(this.#leg.head.fields, head.fields)) this.#switch(head);
    else this.cut(new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The upstream switched protocols unasked"));
  }

  #respond(head: ResponseHead, framing: Framing): void {
    const { deadlines, limits } = this.#around;
    if (this.#leg.extended === true && limits.tunnel_lifetime > 0) {
      this.deadline = deadlines.now() + limits.tunnel_lifetime;
      deadlines.add(this);
    }
    const answer = this.#leg.answer?.(head, framing);
    if (answer === undefined) {
      this.#inbound.respond(this.#leg.response(head), framing);
      return;
    }
    this.#responseStage = answer.body?.(this.#clientSink(), {
      drained: () => {
        if (!this.#over && !this.#upstreamDone) this.#outbound.resume();
      },
      failed: (failure) => this.cut(failure),
    });
    this.#inbound.respond(answer.head, answer.framing);
  }

  #clientSink(): BodySink {
    return {
      write: (bytes) => this.#over || this.#inbound.write(bytes),
      end: (trailers) => this.#finish(trailers),
    };
  }

  #upstreamSink(): BodySink {
    return {
      write: (bytes) => this.#over || this.#upstreamDone || this.#outbound.write(bytes),
      end: (trailers) => {
        if (!this.#over && !this.#upstreamDone) this.#outbound.end(trailers);
      },
    };
  }

  /** What follows a valid 101 is nobody's HTTP: bytes both ways, unread. */
  #switch(head: ResponseHead): void {
    this.#over = true;
    clearTimeout(this.#continueTimer);
    const upstream = this.#outbound.takeOver();
    const client = this.#inbound.takeOver(this.#leg.response(head));
    this.#splice = splice(client, upstream, this.#around);
    void this.#splice.done.then(({ bytesOut, bytesIn, failure }) => {
      const relayed = { status: head.status, bytesOut, bytesIn };
      this.#resolve(
        failure === undefined ? { kind: "relayed", ...relayed } : { kind: "failed", failure, ...relayed },
      );
    });
  }

  /** A WebSocket in HTTP/2 was open for too long. One that is idle is noticed by its ends, any other by the splice. */
  expired(): void {
    this.cut(new Failure("E_TIMEOUT", "client", "The WebSocket was open for too long"));
  }

  cut(failure: Failure): void {
    if (this.#splice !== undefined) {
      this.#splice.cut(failure);
    } else if (!this.#over) {
      if (!this.#upstreamDone) this.#outbound.abort();
      this.#settle({ kind: "failed", failure, ...this.#counts() });
    }
  }

  #finish(trailers: FieldLines): void {
    if (this.#over) return;
    if (this.#isHalf()) {
      this.#answerWhole = true;
      this.#inbound.endSide?.(trailers);
      return;
    }
    // An answer that comes before the request is whole is final: the rest of the request has no reader.
    if (!this.#requestWhole) this.#inbound.closeAfter();
    // A coded body may end before the upstream does: what follows has no reader, and nobody would end it.
    if (!this.#upstreamDone) this.#outbound.abort();
    this.#inbound.end(trailers);
    this.#settle({ kind: "relayed", ...this.#counts() });
  }

  /** RFC 9113 section 8.5: END_STREAM is like a FIN, after which the other direction goes on until it has its own. */
  #isHalf(): boolean {
    if (this.#leg.extended !== true || this.#requestWhole) return false;
    return this.#answerEnded && this.#inbound.endSide !== undefined;
  }

  /** The upstream said all that it will, and reads no more. */
  #letGo(): void {
    this.#inbound.abort(NO_ERROR);
    this.#settle({ kind: "relayed", ...this.#counts() });
  }

  /** A body that began to leave cannot be sent twice. */
  #mayTryAgain(untouched: boolean | "unprocessed"): boolean {
    const { framing, head } = this.#leg;
    if (framing.kind !== "none") return false;
    return untouched === "unprocessed" || (untouched && this.#outbound.reused && isIdempotent(head.method));
  }

  #goAhead(): void {
    if (!this.#over && this.#status === undefined) {
      this.#inbound.inform({ status: 100, phrase: "Continue", minor: 1, fields: [] });
    }
  }

  #counts(): { status: number | undefined; bytesOut: number; bytesIn: number } {
    return { status: this.#status, bytesOut: this.#bytesOut, bytesIn: this.#bytesIn };
  }

  #settle(outcome: Outcome): void {
    this.#over = true;
    this.#around.deadlines.remove(this);
    clearTimeout(this.#continueTimer);
    this.#requestStage?.close();
    this.#responseStage?.close();
    this.#resolve(outcome);
  }
}

/** RFC 9110 section 9.2.2. */
function isIdempotent(method: string): boolean {
  return /^(?:GET|HEAD|OPTIONS|PUT|DELETE)$/.test(method);
}
