/** A connection that never spoke HTTP to us, as the steps behind CONNECT see it: nothing can be said to it in words. */
import type { Socket } from "node:net";
import type { Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import type { Inbound, InboundEvents, Raw } from "../model/inbound.ts";

/** As CONNECT has it, though nobody sent one. */
const HEAD: RequestHead = { method: "CONNECT", target: "", minor: 1, fields: [] };
const FRAMING: Framing = { kind: "none" };

export class RawInbound implements Inbound {
  readonly protocol = "http/1.1";
  readonly head = HEAD;
  readonly framing = FRAMING;
  readonly responded = undefined;
  readonly #socket: Socket;
  readonly #early: Buffer;
  #taken = false;
  #lost: (() => void) | undefined = undefined;

  /** `early`: what was read of the connection already; it comes first. */
  constructor(socket: Socket, early: Buffer) {
    this.#socket = socket;
    this.#early = early;
  }

  /** Whether the connection is somebody else's by now. */
  get taken(): boolean {
    return this.#taken;
  }

  whenLost(callback: () => void): void {
    this.#lost = callback;
    this.#socket.once("close", callback);
  }

  /** No answer goes out: the client waits for the destination's own bytes. */
  takeOver(_head: ResponseHead): Raw {
    this.#taken = true;
    if (this.#lost !== undefined) this.#socket.off("close", this.#lost);
    return { socket: this.#socket, early: this.#early };
  }

  abort(): void {
    this.#socket.resetAndDestroy();
  }

  respond(_head: ResponseHead, _framing: Framing): void {
    this.abort();
  }

  start(_events: InboundEvents): void {}
  closeAfter(): void {}
  pause(): void {}
  resume(): void {}
  inform(_head: ResponseHead): void {}
  write(_bytes: Buffer): boolean {
    return true;
  }
  end(): void {}
}
