/** A scripted HTTP/1.1 origin in the private internet. It keeps every byte it gets and answers what a test says. */
import { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import { TLSSocket } from "node:tls";
import type { Message } from "./message-reader.ts";
import { readMessage } from "./message-reader.ts";
import type { Internet } from "./private-internet.ts";
import { PUBLIC_V4 } from "./private-internet.ts";
import { type Until, untilChanged } from "./until-changed.ts";

export interface OriginOptions {
  /** Default: `PUBLIC_V4`. */
  readonly address?: string;
  /** Default: 443 with `tls`, else 80. */
  readonly port?: number;
  /** Names of a right certificate, or a context of the test's own making. Absent: plain. */
  readonly tls?: readonly string[] | SecureContext;
  /** This origin is the one that the secret belongs to. */
  readonly bound?: boolean;
  /** Called for each whole request. What it returns is written; default a small 200. */
  readonly answer?: (request: Message, connection: Connection) => Reply | Promise<Reply>;
  /** Takes a connection over from its first (decrypted) byte on; `answer` is not called. */
  readonly serve?: (connection: Connection) => void;
}

/** Bytes as latin1 text or a buffer; nothing is written where it is undefined. */
export type Reply = string | Buffer | undefined;

export interface Connection {
  /** Decrypted where the origin speaks TLS. */
  readonly socket: Duplex;
  /** Everything received so far, latin1; the first MiB of it. */
  readonly received: string;
  readonly requests: readonly Message[];
  /** The server name of the ClientHello. */
  readonly servername: string | undefined;
  /** The peer ended, broke off or was broken off. */
  readonly closed: boolean;
  /** How it closed: `end` is an orderly FIN. */
  readonly ending: "end" | "error" | undefined;
  /** RST, under whatever TLS there is. */
  reset(): void;
}

export interface Origin {
  readonly address: string;
  readonly port: number;
  /** TCP connections, in order, also those whose handshake failed. */
  readonly connections: readonly Connection[];
  /** Over all connections, in order of arrival. */
  readonly requests: readonly Message[];
  /** Resolves once the condition holds; asked again at each byte, request and close. Rejects after `ms`. */
  readonly until: Until;
  close(): void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const KEPT = 1_048_576;

export async function createOrigin(internet: Internet, options: OriginOptions = {}): Promise<Origin> {
  const address = options.address ?? PUBLIC_V4;
  const port = options.port ?? (options.tls === undefined ? 80 : 443);
  const server = await internet.net.listen(address, port);
  server.unref();
  const changes = new EventEmitter();
  changes.setMaxListeners(0);
  const connections: Connection[] = [];
  const requests: Message[] = [];
  const watch = options.bound === true ? undefined : internet.canary.watch(`origin ${address}:${port}`);
  const context = contextOf(internet, options.tls);
  server.on("connection", (raw) => {
    const socket =
      context === undefined ? raw : new TLSSocket(raw, { isServer: true, secureContext: context });
    const connection: Mutable<Connection> = {
      socket,
      received: "",
      requests: [],
      servername: undefined,
      closed: false,
      ending: undefined,
      reset: () => void raw.resetAndDestroy(),
    };
    connections.push(connection);
    raw.on("error", () => undefined);
    follow(connection, changes);
    socket.on("data", (bytes: Buffer) => watch?.see(bytes));
    if (options.serve !== undefined) options.serve(connection);
    else serveRequests(connection, options.answer ?? (() => respond("ok")), requests, changes);
    changes.emit("change");
  });
  const origin = { address, port, connections, requests, until: untilChanged(changes), close };
  internet.onClose(close);
  return origin;

  function close(): void {
    server.close();
    for (const { socket } of connections) socket.destroy();
  }
}

/** A whole response with its length. `extra` is further field lines. */
export function respond(body: string, status = "200 OK", extra: readonly string[] = []): string {
  const lines = [`HTTP/1.1 ${status}`, `Content-Length: ${Buffer.byteLength(body)}`, ...extra];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

function contextOf(internet: Internet, tls: OriginOptions["tls"]): SecureContext | undefined {
  if (tls === undefined || !Array.isArray(tls)) return tls as SecureContext | undefined;
  return internet.authority.context(...tls);
}

function follow(connection: Mutable<Connection>, changes: EventEmitter): void {
  const { socket } = connection;
  function close(ending: "end" | "error"): void {
    connection.ending ??= ending;
    connection.closed = true;
    changes.emit("change");
  }
  socket.on("data", (bytes: Buffer) => {
    if (socket instanceof TLSSocket) connection.servername = servernameOf(socket);
    if (connection.received.length < KEPT) connection.received += bytes.toString("latin1");
    changes.emit("change");
  });
  socket.on("error", () => close("error"));
  socket.on("end", () => close("end"));
  socket.on("close", () => close("error"));
}

function servernameOf(socket: TLSSocket): string | undefined {
  const { servername } = socket as TLSSocket & { servername?: string | false };
  return typeof servername === "string" ? servername : undefined;
}

function serveRequests(
  connection: Mutable<Connection>,
  answer: NonNullable<OriginOptions["answer"]>,
  all: Message[],
  changes: EventEmitter,
): void {
  const { socket } = connection;
  const own: Message[] = [];
  connection.requests = own;
  let pending = "";
  let turn = Promise.resolve();
  socket.on("data", (bytes: Buffer) => {
    pending += bytes.toString("latin1");
    for (;;) {
      const read = readMessage(pending, { role: "request" });
      if (read === undefined) return;
      pending = pending.slice(read.size);
      own.push(read.message);
      all.push(read.message);
      changes.emit("change");
      turn = turn.then(async () => {
        write(socket, await answer(read.message, connection));
        changes.emit("change");
      });
    }
  });
  socket.on("end", () => socket.end());
}

function write(socket: Duplex, reply: Reply): void {
  if (reply === undefined || !socket.writable) return;
  socket.write(typeof reply === "string" ? Buffer.from(reply, "latin1") : reply);
}
