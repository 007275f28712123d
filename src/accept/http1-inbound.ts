/** One request on a client's HTTP/1.1 connection, and the answer to it. */
import type { FieldLines, Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import type { Failure } from "../model/failure.ts";
import type { Inbound, InboundEvents, Raw } from "../model/inbound.ts";
import { BodyWriter, renderResponseHead } from "../wire/message-writer.ts";
import type { ParsedRequest } from "../wire/request-head.ts";

/** What an inbound needs of the connection that it is on. */
export interface InboundHost {
  write(bytes: Buffer): boolean;
  /** Lets the request's body flow to `events`. */
  startBody(): void;
  pauseBody(): void;
  resumeBody(): void;
  /** The answer is whole; `close`: it was the connection's last. */
  answered(close: boolean): void;
  abort(): void;
  detach(): Raw;
}

export class Http1Inbound implements Inbound {
  readonly protocol = "http/1.1";
  readonly head: RequestHead;
  readonly framing: Framing;
  responded: number | undefined = undefined;
  /** Set by `start`; until then nobody hears of the body. */
  events: InboundEvents | undefined = undefined;
  readonly #host: InboundHost;
  readonly #request: ParsedRequest;
  #writer: BodyWriter | undefined = undefined;
  #close: boolean;
  #over = false;
  #lost: Failure | undefined = undefined;
  #onLost: (() => void) | undefined = undefined;

  constructor(request: ParsedRequest, target: string, host: InboundHost) {
    this.head = { method: request.method, target, minor: request.minor, fields: request.fields };
    this.framing = request.framing;
    this.#request = request;
    this.#host = host;
    this.#close = request.close;
  }

  start(events: InboundEvents): void {
    this.events = events;
    this.#onLost = undefined;
    if (this.#lost === undefined) this.#host.startBody();
    else events.gone(this.#lost);
  }

  whenLost(callback: () => void): void {
    if (this.#lost === undefined) this.#onLost = callback;
    else callback();
  }

  pause(): void {
    if (!this.#over) this.#host.pauseBody();
  }

  resume(): void {
    if (!this.#over) this.#host.resumeBody();
  }

  inform(head: ResponseHead): void {
    // RFC 9110 section 15.2: a 1.0 client knows no interim response.
    if (this.#over || this.head.minor === 0) return;
    const text = renderResponseHead(head, { kind: "none" }, { close: false, minor: 1 });
    this.#host.write(Buffer.from(text, "latin1"));
  }

  respond(head: ResponseHead, framing: Framing): void {
    if (this.#over) return;
    this.responded = head.status;
    const hop = this.#hopFraming(framing);
    this.#close ||= hop.kind === "close";
    this.#writer = new BodyWriter(hop, this.#host);
    this.#writer.head(renderResponseHead(head, hop, { close: this.#close, minor: this.head.minor }));
  }

  closeAfter(): void {
    this.#close = true;
  }

  write(bytes: Buffer): boolean {
    return this.#over || this.#writer === undefined ? true : this.#writer.write(bytes);
  }

  end(trailers: FieldLines): void {
    if (this.#over || this.#writer === undefined) return;
    this.#writer.end(trailers);
    this.#over = true;
    this.#host.answered(this.#close);
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#host.abort();
  }

  takeOver(head: ResponseHead): Raw {
    this.responded = head.status;
    this.#over = true;
    const text = renderResponseHead(head, { kind: "none" }, { close: false, minor: 1 });
    this.#host.write(Buffer.from(text, "latin1"));
    return this.#host.detach();
  }

  /** The connection is gone; whoever listens is told once, and nothing is written any more. */
  lost(failure: Failure): void {
    if (this.#over) return;
    this.#over = true;
    this.#lost = failure;
    this.#onLost?.();
    this.events?.gone(failure);
  }

  /** The body is malformed, and the client still there: whoever relays it may answer. */
  broken(failure: Failure): void {
    if (this.#over) return;
    this.#close = true;
    this.events?.gone(failure);
  }

  /** A 1.0 client cannot read chunks, so its body ends with the connection. */
  #hopFraming(framing: Framing): Framing {
    if (this.#request.method === "HEAD") return framing;
    const chunked = framing.kind === "chunked" || framing.kind === "close";
    if (!chunked) return framing;
    return this.head.minor === 0 ? { kind: "close" } : { kind: "chunked" };
  }
}
