/** Ends a client's TLS with a leaf of our own CA. */
import type { Socket } from "node:net";
import { type SecureContext, TLSSocket } from "node:tls";
import type { Deadlines, Expiring } from "../model/deadline.ts";
import { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";

export interface HandshakeSurroundings {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  /** What the client may choose from, HTTP/1.1 by default; empty: no protocol is negotiated. */
  readonly alpn?: readonly string[];
}

/**
 * Resolves with the decrypted connection once the handshake is done.
 *
 * `bytes` are the peeked ones; they are handed to the handshake. Rejects with `E_BAD_HELLO` where the client
 * breaks it off (it does so when it does not trust the CA) or `E_TIMEOUT`.
 */
export function endTls(
  socket: Socket,
  bytes: Buffer,
  context: SecureContext,
  around: HandshakeSurroundings,
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    if (socket.destroyed) {
      reject(new Failure("E_BAD_HELLO", "client", "The client left before the handshake"));
      return;
    }
    socket.unshift(bytes);
    const tls = new TLSSocket(socket, {
      isServer: true,
      secureContext: context,
      ...(around.alpn?.length === 0 ? {} : { ALPNProtocols: [...(around.alpn ?? ["http/1.1"])] }),
      requestCert: false,
    });
    const entry: Expiring = {
      deadline: around.deadlines.now() + around.limits.handshake_timeout,
      expired: () => fail(tooLate),
    };
    let over = false;
    around.deadlines.add(entry);
    // Stays for good: an error on either socket is never unheard.
    tls.on("error", onEnd);
    // Without a tls.Server an error after the handshake, such as a forged record, is told in this event alone.
    tls.on("_tlsError", (error: Error) => tls.destroy(error));
    tls.once("close", onEnd);
    tls.once("end", onEnd);
    tls.once("secure", () => {
      over = true;
      around.deadlines.remove(entry);
      tls.off("end", onEnd);
      tls.off("close", onEnd);
      // Client renegotiation is a second, unjudged handshake (CVE-2026-123872).
      tls.disableRenegotiation();
      resolve(tls);
    });

    /** It is half-open, as the socket below is, so an end closes nothing by itself. */
    function onEnd(): void {
      fail(broken);
    }
    /** An error is dear to make, and after the handshake nobody would see it. */
    function fail(why: () => Failure): void {
      if (!over) {
        over = true;
        around.deadlines.remove(entry);
        reject(why());
      }
      tls.destroy();
    }
  });
}

function tooLate(): Failure {
  return new Failure("E_TIMEOUT", "client", "The client did not finish its handshake in time");
}

function broken(): Failure {
  return new Failure(
    "E_BAD_HELLO",
    "client",
    "The client broke off the TLS handshake; does it trust the CA?",
  );
}
