/** Reads a connection's first bytes without consuming them: a ClientHello, HTTP, or something else. */
import type { Duplex } from "node:stream";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import { Failure } from "../model/failure.ts";
import type { Raw } from "../model/inbound.ts";
import type { Limits } from "../model/limits.ts";
import { type ClientHello, readClientHello } from "../wire/client-hello.ts";

export type Peeked =
  | { readonly kind: "hello"; readonly hello: ClientHello; readonly bytes: Buffer }
  | { readonly kind: "other"; readonly bytes: Buffer };

/**
 * Waits for a whole ClientHello, or for the first byte that cannot be one.
 *
 * Rejects with `E_BAD_HELLO` (malformed, or the client left) or `E_TIMEOUT`. The socket is paused after.
 */
export function peek(
  raw: Raw,
  { limits, deadlines }: { readonly limits: Limits; readonly deadlines: Deadlines },
  timeoutMs: number,
): Promise<Peeked> {
  return new Promise((resolve, reject) => {
    const { socket } = raw;
    let bytes = raw.early;
    let settled = false;
    const entry: Expiring = {
      deadline: deadlines.now() + timeoutMs,
      expired: () => fail(new Failure("E_TIMEOUT", "client", "The client sent no ClientHello in time")),
    };
    const stop = listen(socket, onData, gone);
    deadlines.add(entry);

    function onData(chunk: Buffer): void {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      look();
    }
    function look(): void {
      if (bytes.length === 0) return;
      try {
        const read = readClientHello(bytes, limits);
        if (read.kind === "incomplete") return;
        settle();
        resolve(
          read.kind === "hello" ? { kind: "hello", hello: read.hello, bytes } : { kind: "other", bytes },
        );
      } catch (error) {
        fail(error);
      }
    }
    function gone(): void {
      fail(new Failure("E_BAD_HELLO", "client", "The client closed before its ClientHello was whole"));
    }
    function fail(error: unknown): void {
      settle();
      reject(error);
    }
    function settle(): void {
      settled = true;
      stop();
      deadlines.remove(entry);
      socket.pause();
    }

    look();
    // Whoever comes next finds it paused: bytes that flow before they have a reader are lost.
    if (settled) return;
    // An end that came before is not told again.
    if (socket.readableEnded || socket.destroyed) gone();
    else socket.resume();
  });
}

/** Whether bytes that are no TLS may be the start of an HTTP/1 request: a token and a blank, or a token so far. */
export function looksLikeHttp(bytes: Buffer): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}(?: |$)/.test(bytes.toString("latin1", 0, 40));
}

function listen(socket: Duplex, onData: (chunk: Buffer) => void, onGone: () => void): () => void {
  socket.on("data", onData);
  socket.once("end", onGone);
  socket.once("close", onGone);
  return () => {
    socket.off("data", onData);
    socket.off("end", onGone);
    socket.off("close", onGone);
  };
}
