/** An upstream HTTP/1.1 connection: sends one request at a time and reads its answer strictly. */

import type { Socket } from "node:net";
import { Appender } from "../base/appender.ts";
import { type Seat, seatFor } from "../base/roster.ts";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { FieldLines, Framing, IpAddress, RequestHead } from "../model/exchange.ts";
import { asFailure, Failure } from "../model/failure.ts";
import type { OutboundEvents, Raw, Upstream } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import type { Turn } from "../model/turn.ts";
import { BodyReader } from "../wire/body-reader.ts";
import { findHeadEnd } from "../wire/find-head.ts";
import { joinCookies } from "../wire/h2-request.ts";
import { BodyWriter, renderRequestHead } from "../wire/message-writer.ts";
import { type ParsedResponse, parseResponseHead } from "../wire/response-head.ts";

/** Where a connection goes between two exchanges. */
export interface UpstreamHome {
  /** The exchange is over and the connection can serve another; `keepMs` caps how long it may idle. */
  idle(upstream: Http1Upstream, keepMs: number): void;
  closed(upstream: Http1Upstream): void;
}

export interface UpstreamSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  readonly home: UpstreamHome;
  /** Whom it leads to: behind a parent proxy, another one than the socket tells. */
  readonly peer: IpAddress | undefined;
}

const NOTHING = Buffer.alloc(0);
/** Larger writes are worth a wake-up each. */
const HELD_BYTES = 16_384;

export class Http1Upstream implements Upstream, Expiring {
  readonly protocol = "http/1.1";
  readonly peer: IpAddress | undefined;
  readonly websockets = false;
  deadline = Number.POSITIVE_INFINITY;
  slot: number | undefined = undefined;
  /** Among all of its pool; its slot is the clock's. */
  readonly seat: Seat<Http1Upstream> = seatFor(this);
  /** Whether it idled before the present exchange. */
  reused = false;
  /** Changed while it idles, by the pool alone. */
  poolKey: string;
  readonly #socket: Socket;
  readonly #around: UpstreamSurroundings;
  #events: OutboundEvents | undefined = undefined;
  #writer: BodyWriter | undefined = undefined;
  #sent = false;
  #method = "";
  readonly #appender = new Appender();
  #buffered: Buffer = NOTHING;
  #response: ParsedResponse | undefined = undefined;
  #body: BodyReader | undefined = undefined;
  #interim = 0;
  #untouched = true;
  #dead = false;

  readonly #sink = {
    write: (bytes: Buffer): boolean => {
      if (bytes.length <= HELD_BYTES) this.#around.turn.hold(this.#socket);
      return this.#socket.write(bytes);
    },
  };

  constructor(socket: Socket, poolKey: string, around: UpstreamSurroundings) {
    this.#socket = socket;
    this.peer = around.peer;
    this.poolKey = poolKey;
    this.#around = around;
    around.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.on("drain", this.#onDrain);
    socket.on("end", this.#onEnd);
    socket.on("error", this.#onGone);
    socket.on("close", this.#onGone);
  }

  get usable(): boolean {
    return !this.#dead && this.#events === undefined && this.#socket.writable && !this.#socket.readableEnded;
  }

  /** It is ready, and there is nothing to send yet. */
  park(): void {
    this.#rest(undefined);
  }

  send(head: RequestHead, framing: Framing, events: OutboundEvents): void {
    this.#events = events;
    this.#method = head.method;
    this.#response = undefined;
    this.#body = undefined;
    this.#interim = 0;
    this.#untouched = true;
    this.#sent = false;
    this.deadline = this.#in(this.#around.limits.response_timeout);
    this.#writer = new BodyWriter(framing, this.#sink);
    // Only a head that came in by HTTP/2 has its cookie in crumbs.
    const joined = head.sensitive === undefined ? head : { ...head, fields: joinCookies(head.fields) };
    this.#writer.head(renderRequestHead(joined, framing));
    this.#socket.resume();
  }

  write(bytes: Buffer): boolean {
    if (this.#dead || this.#writer === undefined) return true;
    this.deadline = this.#in(this.#around.limits.response_timeout);
    return this.#writer.write(bytes);
  }

  end(trailers: FieldLines): void {
    if (this.#dead) return;
    this.#writer?.end(trailers);
    this.#sent = true;
    if (this.#response === undefined) this.deadline = this.#in(this.#around.limits.response_timeout);
  }

  pause(): void {
    this.deadline = Number.POSITIVE_INFINITY;
    this.#socket.pause();
  }

  resume(): void {
    if (this.#dead) return;
    this.deadline = this.#in(this.#around.limits.progress_timeout);
    this.#socket.resume();
  }

  abort(): void {
    this.#events = undefined;
    this.destroy();
  }

  takeOver(): Raw {
    const early = this.#buffered;
    this.#dead = true;
    this.#events = undefined;
    this.#retire();
    const socket = this.#socket;
    socket.pause();
    socket.uncork();
    socket.off("data", this.#onData);
    socket.off("drain", this.#onDrain);
    socket.off("end", this.#onEnd);
    return { socket, early };
  }

  destroy(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#writer?.discard();
    this.#retire();
    this.#socket.destroy();
  }

  expired(): void {
    if (this.#events === undefined) this.destroy();
    else this.#fail(new Failure("E_TIMEOUT", "upstream", "The upstream took too long to answer"));
  }

  // --- Internal ---

  #in(ms: number): number {
    return this.#around.deadlines.now() + ms;
  }

  #retire(): void {
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
    this.#around.home.closed(this);
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#events === undefined) {
      // Nobody asked: an answer that comes unbidden would be read as the next one's.
      this.destroy();
      return;
    }
    this.#untouched = false;
    try {
      if (this.#response === undefined) this.#takeHead(bytes);
      else this.#takeBody(bytes, 0);
    } catch (error) {
      this.#fail(asFailure(error, "The response could not be read"));
    }
  };

  #takeHead(bytes: Buffer): void {
    let scanned = Math.max(0, this.#buffered.length - 3);
    let rest = this.#appender.append(this.#buffered, bytes);
    this.#buffered = NOTHING;
    while (this.#events !== undefined && rest.length > 0) {
      const end = findHeadEnd(rest, scanned);
      scanned = 0;
      const { limits } = this.#around;
      if (end < 0 && rest.length <= limits.head_bytes) {
        this.#buffered = rest;
        return;
      }
      const response = parseResponseHead(rest, end < 0 ? rest.length : end, this.#method, limits);
      rest = rest.subarray(end);
      if (response.status >= 200 || response.status === 101) {
        this.#begin(response, rest);
        return;
      }
      this.#inform(response);
    }
  }

  #inform(response: ParsedResponse): void {
    this.#interim += 1;
    if (this.#interim > this.#around.limits.interim_responses) {
      throw new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The upstream sent too many interim responses");
    }
    this.#events?.informed(response);
  }

  #begin(response: ParsedResponse, rest: Buffer): void {
    this.#response = response;
    this.#appender.forget();
    if (response.status === 101) {
      this.#buffered = rest;
      this.#events?.head(response, { kind: "none" });
      return;
    }
    this.deadline = this.#in(this.#around.limits.progress_timeout);
    const { framing } = response;
    this.#body =
      framing.kind === "none" ? undefined : new BodyReader(framing, this.#around.limits, "upstream");
    this.#events?.head(response, framing);
    this.#takeBody(rest, 0);
  }

  #takeBody(bytes: Buffer, start: number): void {
    const events = this.#events;
    // The other side may have ended the exchange while it took the head.
    if (events === undefined) return;
    const body = this.#body;
    let next = start;
    if (body !== undefined && !body.done) {
      this.deadline = this.#in(this.#around.limits.progress_timeout);
      next = body.read(bytes, start, (data) => this.#events?.data(data));
    }
    if (body === undefined || body.done) this.#finish(bytes.length - next);
  }

  /** `surplus`: bytes after the answer, which no honest upstream sends. */
  #finish(surplus: number): void {
    const events = this.#events;
    const response = this.#response;
    if (events === undefined || response === undefined) return;
    const trailers = this.#body?.trailers ?? [];
    const keep = this.#sent && !response.close && surplus === 0 && response.framing.kind !== "close";
    this.#events = undefined;
    this.#body = undefined;
    this.#writer = undefined;
    if (keep) this.#rest(response.keepAliveTimeout);
    else this.destroy();
    events.end(trailers);
  }

  #rest(keepAliveTimeout: number | undefined): void {
    this.reused = true;
    const { pool_idle_timeout } = this.#around.limits;
    // A second early: the upstream's clock started before ours.
    const promised =
      keepAliveTimeout === undefined ? pool_idle_timeout : Math.max(0, keepAliveTimeout * 1000 - 1000);
    const keepMs = Math.min(pool_idle_timeout, promised);
    this.deadline = this.#in(keepMs);
    this.#socket.resume();
    this.#around.home.idle(this, keepMs);
  }

  readonly #onDrain = (): void => this.#events?.drained();

  readonly #onEnd = (): void => {
    if (this.#events !== undefined && this.#response?.framing.kind === "close") {
      this.#body?.eof();
      this.#finish(0);
    } else this.#onGone();
  };

  readonly #onGone = (): void => {
    if (this.#dead) return;
    if (this.#events === undefined) this.destroy();
    else {
      const when = this.#untouched ? "before it answered" : "within its answer";
      this.#fail(
        new Failure("E_UPSTREAM_PROTOCOL", "upstream", `The upstream closed the connection ${when}`),
      );
    }
  };

  #fail(failure: Failure): void {
    const events = this.#events;
    this.#events = undefined;
    this.destroy();
    events?.failed(failure, this.#untouched);
  }
}
