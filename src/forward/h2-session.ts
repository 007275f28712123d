/** An upstream HTTP/2 connection: streams side by side, until the upstream says that it takes no more. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  connect,
  type SecureClientSessionOptions,
} from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import type { IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { headerListSize } from "../wire/h2-fields.ts";
import { Http2Upstream } from "./h2-upstream.ts";

export interface SessionHome {
  /** No stream is open on it. */
  idles(session: Http2UpstreamSession): void;
  /** One is again. */
  works(session: Http2UpstreamSession): void;
  /** It takes no more streams. */
  leaving(session: Http2UpstreamSession): void;
  closed(session: Http2UpstreamSession): void;
}

export interface SessionSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly home: SessionHome;
  /** Whom it leads to: behind a parent proxy, another one than the socket tells. */
  readonly peer: IpAddress | undefined;
}

const MIB = 1_048_576;
const GOODBYE_MS = 1_000;

/** Takes `socket` over; resolves once the upstream has sent its SETTINGS. Rejects with a Failure and destroys it. */
export function openSession(
  socket: TLSSocket,
  poolKey: string,
  around: SessionSurroundings,
  signal: AbortSignal,
): Promise<Http2UpstreamSession> {
  return new Promise((resolve, reject) => {
    const { limits } = around;
    const options: SecureClientSessionOptions & { readonly strictSingleValueFields: boolean } = {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: limits.h2_upstream_window,
        maxHeaderListSize: headerListSize(limits),
      },
      maxHeaderListPairs: limits.head_fields * 2,
      maxSessionMemory: Math.ceil(limits.h2_session_bytes / MIB),
      // Repetition is judged by us; the types do not know the option yet.
      strictSingleValueFields: false,
    };
    // Dialled half-open; but a peer that ends its side of HTTP/2 has ended all of it.
    socket.allowHalfOpen = false;
    const session = connect(AUTHORITY, options);
    const abandon = (): void => fail(signal.reason instanceof Failure ? signal.reason : gone());
    // Stays for good: an error of a session is never unheard.
    session.on("error", () => fail(gone()));
    session.once("close", () => fail(gone()));
    session.once("remoteSettings", () => {
      signal.removeEventListener("abort", abandon);
      resolve(new Http2UpstreamSession(session, socket, poolKey, around));
    });
    signal.addEventListener("abort", abandon, { once: true });
    if (signal.aborted) abandon();

    function fail(failure: Failure): void {
      signal.removeEventListener("abort", abandon);
      reject(failure);
      session.destroy();
      socket.destroy();
    }
  });
}

/** Says nothing: each request has an authority of its own. */
const AUTHORITY = "https://upstream.invalid";

export class Http2UpstreamSession implements Expiring {
  deadline = Number.POSITIVE_INFINITY;
  slot: number | undefined = undefined;
  readonly peer: IpAddress | undefined;
  /** Changed while nothing was sent yet, by the pool alone. */
  poolKey: string;
  readonly #session: ClientHttp2Session;
  readonly #socket: TLSSocket;
  readonly #around: SessionSurroundings;
  #open = 0;
  #served = 0;
  /** The greatest stream that the upstream may have looked at, once it said GOAWAY. */
  #lastStream: number | undefined = undefined;
  #retired = false;
  #closed = false;

  constructor(session: ClientHttp2Session, socket: TLSSocket, poolKey: string, around: SessionSurroundings) {
    this.#session = session;
    this.#socket = socket;
    this.peer = around.peer;
    this.poolKey = poolKey;
    this.#around = around;
    around.deadlines.add(this);
    // The window of the connection: as many streams may fill theirs as one pauses.
    session.setLocalWindowSize(around.limits.h2_upstream_window * 4);
    session.on("goaway", (_code, lastStream) => {
      this.#lastStream = lastStream;
      this.#around.home.leaving(this);
    });
    session.once("close", this.#onClose);
    session.once("error", this.#onClose);
    this.#idle();
  }

  get websockets(): boolean {
    return this.#session.remoteSettings.enableConnectProtocol === true;
  }

  get usable(): boolean {
    return (
      !this.#closed &&
      !this.#retired &&
      !this.#session.closed &&
      !this.#session.destroyed &&
      !this.#socket.destroyed
    );
  }

  /** As many streams are open as the upstream takes; nghttp2 would hold another one back until one ends. */
  get full(): boolean {
    return this.#open >= (this.#session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY);
  }

  get open(): number {
    return this.#open;
  }

  /** Nobody sent anything over it. */
  get unused(): boolean {
    return this.#served === 0;
  }

  get lost(): boolean {
    return this.#session.destroyed || this.#socket.destroyed;
  }

  /** Room for one request, until `release`. */
  take(): Http2Upstream {
    const { limits, deadlines } = this.#around;
    const upstream = new Http2Upstream(this, this.#served > 0, { limits, deadlines });
    if (this.#open === 0) this.#around.home.works(this);
    this.#open += 1;
    this.#served += 1;
    this.deadline = Number.POSITIVE_INFINITY;
    return upstream;
  }

  request(pairs: string[], options: ClientSessionRequestOptions): ClientHttp2Stream {
    return this.#session.request(pairs, options);
  }

  release(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    if (this.#session.closed) this.destroy();
    else this.#idle();
  }

  /** The upstream said which streams it will not look at, and this is one. */
  refused(stream: number | undefined): boolean {
    return this.#lastStream !== undefined && (stream === undefined || stream > this.#lastStream);
  }

  /** Takes no more streams; those that are open end as they would. */
  retire(): void {
    this.#retired = true;
    if (this.#open === 0) this.destroy();
    // What was reset in this turn has yet to leave, and `close` would not wait for it.
    else setImmediate(() => (this.#open === 0 ? this.destroy() : this.#session.close()));
  }

  destroy(): void {
    this.#session.destroy();
    // An upstream that does not read its GOAWAY is not waited for.
    setTimeout(() => this.#socket.destroy(), GOODBYE_MS).unref();
    this.#onClose();
  }

  expired(): void {
    this.destroy();
  }

  #idle(): void {
    if (this.#closed) return;
    this.#around.home.idles(this);
    this.deadline = this.#around.deadlines.now() + this.#around.limits.pool_idle_timeout;
  }

  readonly #onClose = (): void => {
    if (this.#closed) return;
    this.#closed = true;
    this.deadline = Number.POSITIVE_INFINITY;
    this.#around.deadlines.remove(this);
    this.#around.home.closed(this);
  };
}

function gone(): Failure {
  return new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The upstream chose HTTP/2 and does not speak it");
}
