/** A client's SOCKS5 connection, up to its one request, which is then a CONNECT like any other. */
import type { Socket } from "node:net";
import type { Door } from "../model/arrival.ts";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import { asFailure, clientLeft, Failure } from "../model/failure.ts";
import type { Inbound, InboundEvents, Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import {
  METHOD,
  REPLY,
  type Read,
  readCredentials,
  readGreeting,
  readSocksRequest,
  SOCKS_VERSION,
  type SocksRequest,
  socksReply,
} from "../wire/socks5.ts";
import type { Asking } from "./arrival.ts";

export interface SocksHandlers {
  /** Whether somebody in particular is asking; `proxyAuthorization` as HTTP would carry it. */
  identified(proxyAuthorization: string | undefined): boolean;
  /** The one request. Must not throw. */
  request(arrival: Asking): void;
  /** No request came of it: malformed, unsupported, nobody, or too slow. */
  failed(outcome: Failure | "identity-unknown"): void;
}

export interface SocksSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
}

const NONE: Framing = { kind: "none" };
/** RFC 1929 section 2. */
const PASSWORD_RIGHT = Buffer.of(1, 0);
const PASSWORD_WRONG = Buffer.of(1, 1);
/** Long enough for the longest message. */
const MESSAGE_BYTES = 1_024;

export class Socks5Connection implements Expiring {
  deadline: number;
  readonly #socket: Socket;
  readonly #door: Door;
  readonly #handlers: SocksHandlers;
  readonly #around: SocksSurroundings;
  #buffered: Buffer = Buffer.alloc(0);
  #step: "greeting" | "credentials" | "request" | "over" = "greeting";
  #proxyAuthorization: string | undefined = undefined;

  constructor(socket: Socket, door: Door, handlers: SocksHandlers, around: SocksSurroundings) {
    this.#socket = socket;
    this.#door = door;
    this.#handlers = handlers;
    this.#around = around;
    this.deadline = around.deadlines.now() + around.limits.head_timeout;
    around.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.once("end", this.#onGone);
    socket.once("close", this.#onGone);
  }

  /** `early`: what was read of the connection already. */
  begin(early: Buffer): void {
    // First, since the early bytes may hold the request, and whoever takes that decides what flows.
    this.#socket.resume();
    if (early.length > 0) this.#onData(early);
  }

  expired(): void {
    this.#fail(new Failure("E_TIMEOUT", "client", "The client took too long"));
  }

  readonly #onGone = (): void => {
    if (this.#step !== "over") this.#fail(clientLeft());
  };

  readonly #onData = (bytes: Buffer): void => {
    this.#buffered = Buffer.concat([this.#buffered, bytes]);
    try {
      // Each step may have been sent along with the one before it.
      for (let more = true; more; ) more = this.#advance();
    } catch (error) {
      if (this.#step === "request") this.#socket.write(socksReply(REPLY.failure));
      this.#fail(asFailure(error));
    }
  };

  /** Whether a message was taken. */
  #advance(): boolean {
    switch (this.#step) {
      case "greeting":
        return this.#take(readGreeting(this.#buffered), (methods) => this.#choose(methods));
      case "credentials":
        return this.#take(readCredentials(this.#buffered), ({ name, password }) =>
          this.#check(name, password),
        );
      case "request":
        return this.#take(readSocksRequest(this.#buffered), (request) => this.#serve(request));
      case "over":
        return false;
    }
  }

  #take<T>(read: Read<T>, act: (value: T) => void): boolean {
    if (read === undefined) {
      if (this.#buffered.length > MESSAGE_BYTES)
        throw new Failure("E_BAD_REQUEST", "client", "Too long for SOCKS");
      return false;
    }
    this.#buffered = this.#buffered.subarray(read.length);
    act(read.value);
    return true;
  }

  /** No credentials where none are needed; where they are, only if the client offers to send some. */
  #choose(methods: readonly number[]): void {
    if (methods.includes(METHOD.none) && this.#handlers.identified(undefined)) {
      this.#socket.write(Buffer.of(SOCKS_VERSION, METHOD.none));
      this.#step = "request";
    } else if (methods.includes(METHOD.password)) {
      this.#socket.write(Buffer.of(SOCKS_VERSION, METHOD.password));
      this.#step = "credentials";
    } else {
      this.#socket.write(Buffer.of(SOCKS_VERSION, METHOD.unacceptable));
      this.#fail("identity-unknown");
    }
  }

  #check(name: string, password: string): void {
    const proxyAuthorization = `Basic ${Buffer.from(`${name}:${password}`, "latin1").toString("base64")}`;
    if (this.#handlers.identified(proxyAuthorization)) {
      this.#proxyAuthorization = proxyAuthorization;
      this.#socket.write(PASSWORD_RIGHT);
      this.#step = "request";
    } else {
      this.#socket.write(PASSWORD_WRONG);
      this.#fail("identity-unknown");
    }
  }

  #serve({ command, authority }: SocksRequest): void {
    if (command !== "connect" || authority === undefined) {
      const code = command === "connect" ? REPLY.addressNotSupported : REPLY.commandNotSupported;
      this.#socket.write(socksReply(code));
      this.#fail(new Failure("E_BAD_REQUEST", "client", "A SOCKS request other than CONNECT"));
      return;
    }
    this.#leave();
    // Bytes that flow before they have a reader are lost, and the answer may take a while.
    this.#socket.pause();
    const { host, port } = authority;
    const name = host.kind === "name" ? host.name : host.address.text;
    this.#handlers.request({
      claims: { authority, host: undefined, proxyAuthorization: this.#proxyAuthorization },
      door: this.#door,
      inbound: new Socks5Inbound(this.#socket, `${name}:${port}`, this.#buffered),
      transport: this.#socket,
    });
  }

  #fail(outcome: Failure | "identity-unknown"): void {
    if (this.#step === "over") return;
    this.#leave();
    this.#handlers.failed(outcome);
    this.#socket.end();
    this.#socket.destroySoon();
  }

  #leave(): void {
    this.#step = "over";
    this.#around.deadlines.remove(this);
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onGone);
    this.#socket.off("close", this.#onGone);
  }
}

/** A CONNECT whose answer is a SOCKS reply. */
class Socks5Inbound implements Inbound {
  readonly protocol = "http/1.1";
  readonly head: RequestHead;
  readonly framing = NONE;
  responded: number | undefined = undefined;
  readonly #socket: Socket;
  readonly #early: Buffer;

  constructor(socket: Socket, target: string, early: Buffer) {
    this.head = { method: "CONNECT", target, minor: 1, fields: [] };
    this.#socket = socket;
    this.#early = early;
  }

  start(events: InboundEvents): void {
    events.end([]);
  }

  whenLost(callback: () => void): void {
    if (this.#socket.destroyed) callback();
    else this.#socket.once("close", callback);
  }

  closeAfter(): void {}
  pause(): void {}
  resume(): void {}
  inform(): void {}

  /** A refusal or a failure: its words cannot be said in SOCKS, so they stay in the record. */
  respond(head: ResponseHead): void {
    this.responded = head.status;
    this.#socket.write(socksReply(replyOf(head)));
  }

  write(): boolean {
    return true;
  }

  end(): void {
    this.#socket.end();
    this.#socket.destroySoon();
  }

  abort(): void {
    this.#socket.resetAndDestroy();
  }

  takeOver(head: ResponseHead): Raw {
    this.responded = head.status;
    this.#socket.write(socksReply(REPLY.succeeded));
    return { socket: this.#socket, early: this.#early };
  }
}

function replyOf({ status, fields }: ResponseHead): number {
  if (status < 500) return status === 400 ? REPLY.failure : REPLY.notAllowed;
  switch (fields.find(({ key }) => key === "x-sallyport-failure")?.value) {
    case "E_RESOLVE":
      return REPLY.hostUnreachable;
    case "E_CONNECT":
      return REPLY.refused;
    case "E_TIMEOUT":
      return REPLY.expired;
    default:
      return REPLY.failure;
  }
}
