/** A client that writes the bytes a test gives it, and reads what comes back, in the gate's namespace. */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { connect as startTls } from "node:tls";
import type { Watch } from "./canary.ts";
import type { Message } from "./message-reader.ts";
import { readMessage, statusOf } from "./message-reader.ts";
import type { Internet } from "./private-internet.ts";

export interface DialOptions {
  /** Default: the proxy's listener. */
  readonly host?: string;
  readonly port?: number;
  /** The source address. */
  readonly from?: string;
}

export interface Wire {
  readonly socket: Duplex;
  /** Everything received and not yet taken by `response`, latin1. */
  readonly received: string;
  /** How the peer left: an orderly end, or a reset (or the TLS equivalent). */
  readonly ending: "end" | "error" | undefined;
  write(bytes: string | Buffer): void;
  /** Writes, and takes the next response; interim responses are taken one by one like others. */
  send(bytes: string | Buffer, options?: TakeOptions): Promise<Message>;
  /** Takes the next response. Rejects where the peer ends first without one. */
  response(options?: TakeOptions): Promise<Message>;
  /** Resolves once the received text satisfies the condition. */
  until(what: string, condition: (received: string) => boolean, ms?: number): Promise<void>;
  /** Resolves with how the peer left. */
  closed(ms?: number): Promise<"end" | "error">;
  /** TLS inside this connection, on the same socket. */
  secure(options: ConnectionOptions): Promise<SecureWire>;
  /** Half-close. */
  end(): void;
  /** RST. */
  reset(): void;
  destroy(): void;
}

export interface SecureWire extends Wire {
  readonly socket: TLSSocket;
}

export interface TakeOptions {
  readonly bodiless?: boolean;
  /** The request was CONNECT. */
  readonly connect?: boolean;
  readonly ms?: number;
}

export const PROXY = { host: "127.0.0.1", port: 8080 } as const;

/** Opens a connection to the proxy (or elsewhere) from the gate's namespace. */
export async function dial(internet: Internet, options: DialOptions = {}): Promise<Wire> {
  const { host, port } = { ...PROXY, ...options };
  const socket = await internet.gate.connect(host, port, options.from);
  internet.onClose(() => socket.destroy());
  return wireOf(socket, socket, internet.canary.watch("a client's socket"));
}

/** CONNECT, then TLS trusting `ca`, with the CONNECT's name as SNI unless told otherwise. */
export async function dialThrough(
  internet: Internet,
  authority: string,
  tls: ConnectionOptions & { readonly lines?: readonly string[]; readonly from?: string },
): Promise<SecureWire> {
  const wire = await dial(internet, tls.from === undefined ? {} : { from: tls.from });
  const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...(tls.lines ?? [])];
  const answer = await wire.send(`${lines.join("\r\n")}\r\n\r\n`, { connect: true });
  if (statusOf(answer) !== 200) throw new Error(`CONNECT was answered with ${answer.start}`);
  const servername = tls.servername ?? authority.replace(/:\d+$/, "");
  return await wire.secure({ ...tls, servername });
}

/** What a wire has got so far, and who waits for more. */
interface Inbox {
  received: string;
  ending: Wire["ending"];
  readonly wakers: Set<() => void>;
  /** Stops reading the socket, which TLS takes over. */
  detach(): void;
}

function openInbox(socket: Duplex, watch: Watch): Inbox {
  const inbox: Inbox = {
    received: "",
    ending: undefined,
    wakers: new Set(),
    detach: () => socket.off("data", take),
  };
  function wake(): void {
    for (const waker of inbox.wakers) waker();
  }
  function take(bytes: Buffer): void {
    watch.see(bytes);
    inbox.received += bytes.toString("latin1");
    wake();
  }
  function leave(how: "end" | "error"): void {
    inbox.ending ??= how;
    wake();
  }
  socket.on("data", take);
  socket.on("end", () => leave("end"));
  socket.on("error", () => leave("error"));
  socket.on("close", () => leave("error"));
  return inbox;
}

/** `transport` is the TCP socket below it, or itself. */
function wireOf(socket: Duplex, transport: Socket, watch: Watch): Wire {
  const inbox = openInbox(socket, watch);
  const wire: Wire = {
    socket,
    get received() {
      return inbox.received;
    },
    get ending() {
      return inbox.ending;
    },
    write(bytes) {
      socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    },
    async send(bytes, options) {
      wire.write(bytes);
      return await wire.response(options);
    },
    response: (options) => takeResponse(inbox, options ?? {}),
    async until(what, condition, ms = 10_000) {
      await waitFor(inbox, () => condition(inbox.received), { what, ms });
    },
    async closed(ms = 10_000) {
      await waitFor(inbox, () => inbox.ending !== undefined, { what: "the close", ms });
      return inbox.ending ?? "error";
    },
    async secure(options) {
      inbox.detach();
      return await secured(startTls({ ...options, socket }), transport, watch);
    },
    end: () => void socket.end(),
    reset: () => void transport.resetAndDestroy(),
    destroy: () => void socket.destroy(),
  };
  return wire;
}

async function takeResponse(inbox: Inbox, { ms = 10_000, ...how }: TakeOptions): Promise<Message> {
  const read = () =>
    readMessage(inbox.received, { role: "response", ...how, ended: inbox.ending !== undefined });
  await waitFor(inbox, () => read() !== undefined || inbox.ending !== undefined, { what: "a response", ms });
  const result = read();
  if (result === undefined) {
    throw new Error(`No response (${inbox.ending}); received: ${JSON.stringify(inbox.received)}`);
  }
  inbox.received = inbox.received.slice(result.size);
  return result.message;
}

async function secured(tls: TLSSocket, transport: Socket, watch: Watch): Promise<SecureWire> {
  const wire = wireOf(tls, transport, watch) as SecureWire;
  await new Promise<void>((resolve, reject) => {
    tls.once("secureConnect", resolve);
    tls.once("error", reject);
    tls.once("close", () => reject(new Error("Closed in the TLS handshake")));
  });
  return wire;
}

interface Wait {
  readonly what: string;
  readonly ms: number;
}

/** Every wait is for an event; the time is only how long a failing test takes. */
function waitFor(inbox: Inbox, condition: () => boolean, { what, ms }: Wait): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(new Error(`Waited in vain for ${what}`))), ms);
    function finish(report: () => void): void {
      clearTimeout(timer);
      inbox.wakers.delete(check);
      report();
    }
    function check(): void {
      if (condition()) finish(resolve);
    }
    inbox.wakers.add(check);
    check();
  });
}
