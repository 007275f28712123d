/** Asks a parent proxy for one tunnel, and reads its answer strictly: nothing of its text goes any further. */
import type { Socket } from "node:net";
import type { Dialable, HandedOver } from "../model/decision.ts";
import { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { findHeadEnd } from "../wire/find-head.ts";
import { parseResponseHead } from "../wire/response-head.ts";

export interface TunnelRequest {
  readonly target: Dialable | HandedOver;
  /** Base64 of `user:password`. */
  readonly authorization: string | undefined;
  readonly limits: Limits;
  readonly signal: AbortSignal;
}

export type TunnelAnswer =
  /** `early`: bytes that came behind the head. */
  | { readonly kind: "open"; readonly early: Buffer }
  /** `final`: another address would fare no better. */
  | { readonly kind: "refused"; readonly failure: Failure; readonly final: boolean };

const NOTHING = Buffer.alloc(0);
const CREDENTIALS_WANTED = 407;

/** `socket` is paused, and whole; after anything but `open` it is destroyed. Rejects where no answer can be read. */
export function askForTunnel(socket: Socket, request: TunnelRequest): Promise<TunnelAnswer> {
  const { signal, limits } = request;
  return new Promise((resolve, reject) => {
    const read = createReader(limits);
    const deadline = setTimeout(() => fail(timedOut()), limits.connect_timeout);
    const abandon = (): void => fail(signal.reason instanceof Failure ? signal.reason : timedOut());
    const closed = (): void => fail(refusedBy("The parent proxy closed the connection"));
    function finish(): void {
      clearTimeout(deadline);
      signal.removeEventListener("abort", abandon);
      socket.off("data", take);
      socket.off("end", closed);
      socket.off("close", closed);
      socket.off("error", closed);
    }
    function fail(failure: Failure): void {
      finish();
      socket.destroy();
      reject(failure);
    }
    function take(bytes: Buffer): void {
      try {
        const answer = read(bytes);
        if (answer !== undefined) settle(answer);
      } catch (error) {
        fail(error instanceof Failure ? error : nonsense());
      }
    }
    function settle({ status, rest }: Answer): void {
      finish();
      if (status < 300) {
        socket.pause();
        resolve({ kind: "open", early: rest });
        return;
      }
      socket.destroy();
      resolve({ kind: "refused", failure: refusal(status), final: status === CREDENTIALS_WANTED });
    }
    signal.addEventListener("abort", abandon, { once: true });
    socket.on("data", take);
    socket.once("end", closed);
    socket.once("close", closed);
    socket.on("error", closed);
    if (signal.aborted) abandon();
    else socket.write(headOf(request), "latin1");
  });
}

interface Answer {
  readonly status: number;
  /** What came behind its head. */
  readonly rest: Buffer;
}

/** Gives the first answer that is not interim, once all of its head is there. Throws a Failure at what is no answer. */
function createReader(limits: Limits): (bytes: Buffer) => Answer | undefined {
  let buffered: Buffer = NOTHING;
  let interim = 0;
  return (bytes) => {
    buffered = buffered.length === 0 ? bytes : Buffer.concat([buffered, bytes]);
    for (let end = headEnd(buffered, limits); end > 0; end = headEnd(buffered, limits)) {
      const { status } = parseResponseHead(buffered, end, "CONNECT", limits);
      buffered = buffered.subarray(end);
      if (status >= 200) return { status, rest: buffered };
      interim += 1;
      if (status === 101 || interim > limits.interim_responses) throw nonsense();
    }
    return undefined;
  };
}

function headOf({ target, authorization }: TunnelRequest): string {
  const host =
    "host" in target
      ? target.host
      : target.address.family === 6
        ? `[${target.address.text}]`
        : target.address.text;
  const authority = `${host}:${target.port}`;
  const credentials = authorization === undefined ? "" : `Proxy-Authorization: Basic ${authorization}\r\n`;
  return `CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${credentials}\r\n`;
}

/** -1 while the head is not whole; a head that is too long is whatever it is long before that. */
function headEnd(bytes: Buffer, limits: Limits): number {
  const end = findHeadEnd(bytes, 0);
  if (end < 0 && bytes.length > limits.head_bytes) throw nonsense();
  return end;
}

function refusal(status: number): Failure {
  if (status !== CREDENTIALS_WANTED) return refusedBy("The parent proxy did not connect");
  return new Failure("E_CONNECT", "operator", "The parent proxy does not take our credentials");
}

function refusedBy(message: string): Failure {
  return new Failure("E_CONNECT", "upstream", message);
}

function nonsense(): Failure {
  return new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The parent proxy did not answer in HTTP");
}

function timedOut(): Failure {
  return new Failure("E_TIMEOUT", "upstream", "The parent proxy did not answer in time");
}
