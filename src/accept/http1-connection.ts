/** The client's side of HTTP/1.1: bytes in, one request at a time out, answers back in order. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Door } from "../model/arrival.ts";
import type { Expiring } from "../model/deadline.ts";
import type { FieldLines } from "../model/exchange.ts";
import { asFailure, clientLeft, cutOff, Failure } from "../model/failure.ts";
import type { Raw } from "../model/inbound.ts";
import { SOCKS_VERSION } from "../wire/socks5.ts";
import { answerBytes } from "./answer.ts";
import type { Http1Ends, Http1Handlers, Http1Surroundings } from "./arrival.ts";
import { Http1Inbound, type InboundHost } from "./http1-inbound.ts";
import { Http1Intake, type IntakeHead } from "./http1-intake.ts";

/** How long a refused client may go on sending before it is cut, so that it reads the refusal first. */
const LINGER_MS = 2_000;
/** Larger writes are worth a wake-up each. */
const HELD_BYTES = 16_384;
/** Bytes of a next request that may wait while one is answered. */
const PIPELINE_BYTES = 65_536;
const UNREADABLE = "The request could not be read";

/** `full`: nothing is read, since the client reads no answers. */
type State = "head" | "full" | "exchange" | "lingering" | "detached" | "closed";

export class Http1Connection implements InboundHost, Expiring {
  deadline: number;
  slot: number | undefined = undefined;
  readonly #socket: Duplex;
  readonly #transport: Socket;
  readonly #door: Door;
  readonly #handlers: Http1Handlers;
  readonly #around: Http1Surroundings;
  #state: State = "head";
  readonly #intake: Http1Intake;
  #current: Http1Inbound | undefined = undefined;
  #flowing = false;
  #ended = false;
  /** No byte has come yet. */
  #silent = true;
  /** The last answer has left the gate whole. */
  #flushed = false;

  constructor(ends: Http1Ends, door: Door, handlers: Http1Handlers, around: Http1Surroundings) {
    const { socket, transport } = ends;
    this.#socket = socket;
    this.#transport = transport;
    this.#door = door;
    this.#handlers = handlers;
    this.#around = around;
    this.#intake = new Http1Intake(around.limits, door.scheme);
    this.deadline = around.deadlines.now() + around.limits.head_timeout;
    around.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.on("drain", this.#onDrain);
    socket.on("end", this.#onEnd);
    // Every end is heard at `close`; this is there so that an error is never unheard.
    socket.on("error", () => {});
    socket.on("close", this.#onClose);
  }

  /** Between two requests, or before the first. */
  get idle(): boolean {
    return this.#state === "head";
  }

  /** Tells once that the connection, or what it became, is closed. */
  whenClosed(callback: () => void): void {
    if (this.#socket.closed) callback();
    else this.#socket.once("close", callback);
  }

  /** Ends an idle connection now and a busy one after its answer. */
  drain(): void {
    if (this.#state === "head" && this.#intake.waiting === 0) this.#linger();
    else this.#current?.closeAfter();
  }

  /** Cuts whatever is under way. */
  cut(): void {
    this.#breakOff(cutOff());
  }

  expired(): void {
    const failure = new Failure("E_TIMEOUT", "client", "The client took too long", { status: 408 });
    if (this.#state === "head" && this.#intake.waiting > 0) this.#refuse(failure);
    else if (this.#state === "exchange") this.#breakOff(failure);
    else if (this.#state === "full" || (this.#state === "lingering" && !this.#flushed)) this.#reset();
    else this.#socket.destroy();
  }

  // --- InboundHost ---

  write(bytes: Buffer): boolean {
    if (this.#socket.destroyed) return true;
    if (bytes.length <= HELD_BYTES) this.#around.turn.hold(this.#socket);
    const more = this.#socket.write(bytes);
    if (!more) this.deadline = this.#in(this.#around.limits.progress_timeout);
    return more;
  }

  startBody(): void {
    this.#flowing = true;
    if (!this.#intake.unfinished) {
      this.#current?.events?.end([]);
      return;
    }
    this.deadline = this.#in(this.#around.limits.progress_timeout);
    const bytes = this.#intake.take();
    this.#socket.resume();
    if (bytes.length > 0) this.#takeBody(bytes);
    if (this.#ended && this.#state === "exchange") this.#onEnd();
  }

  pauseBody(): void {
    this.#socket.pause();
    this.deadline = Number.POSITIVE_INFINITY;
  }

  resumeBody(): void {
    if (this.#intake.unfinished) this.deadline = this.#in(this.#around.limits.progress_timeout);
    this.#socket.resume();
  }

  answered(close: boolean): void {
    this.#current = undefined;
    if (this.#socket.destroyed) return;
    // Whoever has ended its side may have asked again before that.
    const over = this.#ended && this.#intake.waiting === 0;
    if (close || this.#intake.unfinished || over || this.#around.draining()) this.#linger();
    else if (!this.#socket.writableNeedDrain) this.#goOn();
    else {
      // Whoever asks on and on and reads nothing would have every answer kept for it (K03).
      this.#state = "full";
      this.#socket.pause();
      this.deadline = this.#in(this.#around.limits.progress_timeout);
    }
  }

  abort(): void {
    this.#reset();
  }

  detach(): Raw {
    const early = this.#intake.take();
    this.#current = undefined;
    this.#leave("detached");
    const socket = this.#socket;
    socket.pause();
    // Whoever goes on with the socket may write below it: what was said so far goes first.
    socket.uncork();
    socket.off("data", this.#onData);
    socket.off("drain", this.#onDrain);
    socket.off("end", this.#onEnd);
    return { socket, early };
  }

  // --- Internal ---

  #in(ms: number): number {
    return this.#around.deadlines.now() + ms;
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#state === "head") this.#takeHead(bytes);
    else if (this.#state === "exchange") this.#takeExchange(bytes);
    else if (this.#state === "full") this.#hold(bytes);
  };

  #takeHead(bytes: Buffer): void {
    if (this.#silent) {
      this.#silent = false;
      if (bytes[0] === SOCKS_VERSION && this.#handlers.socks !== undefined) {
        this.#intake.hold(bytes);
        this.#handlers.socks(this.detach());
        return;
      }
    }
    if (this.#intake.waiting === 0) this.deadline = this.#in(this.#around.limits.head_timeout);
    this.#intake.hold(bytes);
    this.#readHead();
  }

  #goOn(): void {
    this.#state = "head";
    this.deadline = this.#in(this.#around.limits.idle_timeout);
    this.#socket.resume();
    if (this.#intake.waiting > 0) queueMicrotask(this.#nextHead);
  }

  readonly #nextHead = (): void => {
    if (this.#state !== "head" || this.#intake.waiting === 0) return;
    this.deadline = this.#in(this.#around.limits.head_timeout);
    this.#readHead();
    if (this.#ended && this.#state === "head") this.#onEnd();
  };

  #readHead(): void {
    let head: IntakeHead | undefined;
    try {
      head = this.#intake.head();
    } catch (error) {
      this.#refuse(asFailure(error, UNREADABLE));
      return;
    }
    if (head !== undefined) this.#begin(head);
  }

  #begin({ request, claimed }: IntakeHead): void {
    this.#state = "exchange";
    this.deadline = Number.POSITIVE_INFINITY;
    this.#flowing = false;
    const { target, claims } = claimed;
    const inbound = new Http1Inbound(request, target, this);
    this.#current = inbound;
    this.#handlers.request({ request, claims, door: this.#door, inbound, transport: this.#transport });
  }

  #takeExchange(bytes: Buffer): void {
    if (this.#flowing && this.#intake.unfinished) this.#takeBody(bytes);
    else this.#hold(bytes);
  }

  #hold(bytes: Buffer): void {
    this.#intake.hold(bytes);
    if (this.#intake.waiting > PIPELINE_BYTES) this.#socket.pause();
  }

  #takeBody(bytes: Buffer): void {
    const events = this.#current?.events;
    if (events === undefined) return;
    this.deadline = this.#in(this.#around.limits.progress_timeout);
    let trailers: FieldLines | undefined;
    try {
      trailers = this.#intake.body(bytes, (data) => events.data(data));
    } catch (error) {
      this.#break(asFailure(error, UNREADABLE));
      return;
    }
    if (this.#intake.waiting > PIPELINE_BYTES) this.#socket.pause();
    if (trailers === undefined) return;
    this.deadline = Number.POSITIVE_INFINITY;
    events.end(trailers);
  }

  /** The body itself is malformed. Whoever relays it is told, and answers: the exchange has one record and one answer. */
  #break(failure: Failure): void {
    this.#flowing = false;
    this.deadline = this.#in(LINGER_MS);
    this.#current?.broken(failure);
  }

  #refuse(failure: Failure): void {
    const answer = this.#handlers.malformed(failure);
    if (answer === undefined) {
      this.#socket.destroy();
      return;
    }
    this.#socket.write(answerBytes(answer));
    this.#linger();
  }

  /**
   * Closes our side and reads on for a moment: closing with unread bytes would reset the answer away. The moment
   * begins when all of the answer has left: a slow client must not find a part of it that looks whole.
   */
  #linger(): void {
    this.#state = "lingering";
    this.#intake.take();
    this.deadline = this.#in(this.#around.limits.progress_timeout);
    this.#socket.once("finish", () => {
      this.#flushed = true;
      if (this.#state === "lingering") this.deadline = this.#in(LINGER_MS);
    });
    this.#socket.resume();
    this.#socket.end();
  }

  readonly #onDrain = (): void => {
    if (this.#state === "full") this.answered(false);
    if (this.#state !== "exchange") return;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#current?.events?.drained();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    if (this.#state === "exchange") this.#endOfExchange();
    else if (this.#state === "head" && this.#intake.waiting > 0) {
      this.#refuse(new Failure("E_BAD_REQUEST", "client", "The request ended within its head"));
    } else if (this.#state !== "detached" && this.#state !== "full") this.#socket.end();
  };

  #endOfExchange(): void {
    const { unfinished } = this.#intake;
    if (unfinished && this.#flowing)
      this.#breakOff(new Failure("E_BAD_REQUEST", "client", "The request body ended early"));
    // TCP may be closed on one side by a client that still wants the answer; whoever ends TLS has left.
    else if (!unfinished && this.#socket !== this.#transport) this.#breakOff(clientLeft());
  }

  readonly #onClose = (): void => {
    if (this.#current !== undefined) this.#lose(clientLeft());
    this.#leave("closed");
    this.#handlers.closed();
  };

  #breakOff(failure: Failure): void {
    this.#lose(failure);
    this.#reset();
  }

  #lose(failure: Failure): void {
    const inbound = this.#current;
    this.#current = undefined;
    inbound?.lost(failure);
  }

  #reset(): void {
    this.#leave("closed");
    // What was answered before it broke off is the client's to see.
    this.#socket.uncork();
    // A FIN would let a body that ends with the connection pass for whole.
    this.#transport.resetAndDestroy();
    this.#socket.destroy();
  }

  #leave(state: "closed" | "detached"): void {
    this.#state = state;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
  }
}
