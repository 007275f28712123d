/** Dials vetted addresses and nothing else: the first of them that answers wins (RFC 8305). */
import { connect, type Socket } from "node:net";
import { parseIpAddress } from "../base/ip.ts";
import type { Dialable } from "../model/decision.ts";
import type { IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Raw } from "../model/inbound.ts";

/** `early`: what came behind the parent proxy's consent. */
export interface Opened extends Raw {
  readonly socket: Socket;
  /** The vetted address that it leads to; undefined where a parent proxy has resolved the name. */
  readonly peer: IpAddress | undefined;
}

export interface DialOptions {
  /** Milliseconds for all candidates together. */
  readonly timeoutMs: number;
  /** Aborted with a `Failure` as its reason, the dial fails with that. */
  readonly signal: AbortSignal;
  /** Milliseconds that a candidate has for itself before the next one is tried beside it; 250 (RFC 8305 section 5). */
  readonly stagger: number;
}

interface Race {
  readonly waiting: Dialable[];
  readonly running: Set<Socket>;
  readonly stagger: number;
  /** The last failure, which stands for all. */
  failure: Failure;
  timer: NodeJS.Timeout | undefined;
  won(socket: Socket): void;
  lost(failure: Failure): void;
}

/** Bulk transfers gain another 7 % from four times as much, which thousands of stalled connections would hold. */
const HIGH_WATER_MARK = 65_536;
const KEEP_ALIVE_MS = 60_000;
/** This machine's own want, not the upstream's fault. */
const OWN_FAULTS = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);

/**
 * Resolves to a connected socket whose peer is one of `candidates`, half-open, with an error listener. Fails with
 * `E_CONNECT` or `E_TIMEOUT`, neither of which names an address. Whatever did not win is destroyed.
 */
export function dial(candidates: readonly Dialable[], options: DialOptions): Promise<Socket> {
  const { signal, timeoutMs, stagger } = options;
  return new Promise((resolve, reject) => {
    const race: Race = {
      waiting: interleave(candidates),
      running: new Set(),
      stagger,
      failure: new Failure("E_CONNECT", "upstream", "The upstream has no address to dial"),
      timer: undefined,
      won: (socket) => {
        race.running.delete(socket);
        finish();
        resolve(socket);
      },
      lost: (failure) => {
        finish();
        reject(failure);
      },
    };
    const deadline = setTimeout(() => race.lost(timedOut()), timeoutMs);
    const abandon = () => race.lost(abandoned(signal));
    signal.addEventListener("abort", abandon, { once: true });
    function finish(): void {
      clearTimeout(deadline);
      clearTimeout(race.timer);
      signal.removeEventListener("abort", abandon);
      race.waiting.length = 0;
      for (const socket of race.running) socket.destroy();
      race.running.clear();
    }
    if (signal.aborted) abandon();
    else startNext(race);
  });
}

function startNext(race: Race): void {
  clearTimeout(race.timer);
  const target = race.waiting.shift();
  if (target === undefined) {
    if (race.running.size === 0) race.lost(race.failure);
    return;
  }
  const socket = open(target);
  race.running.add(socket);
  // The first of these listeners stays: a socket without one would take the process down.
  socket.on("error", (error) => drop(race, socket, failureOf(error)));
  socket.once("connect", () => {
    if (!race.running.has(socket)) return;
    if (isPeer(socket, target)) race.won(socket);
    else drop(race, socket, new Failure("E_CONNECT", "upstream", "The upstream is not where it was dialled"));
  });
  if (race.waiting.length > 0) race.timer = setTimeout(startNext, race.stagger, race);
}

function open({ address, port }: Dialable): Socket {
  const tuning = { highWaterMark: HIGH_WATER_MARK };
  return connect({
    ...tuning,
    host: address.text,
    port,
    family: address.family,
    // A literal is never looked up; should that change, this fails rather than dial what nobody vetted.
    lookup: (_host, _options, callback) =>
      callback(new Failure("E_INTERNAL", "gate", "A literal was looked up"), ""),
    autoSelectFamily: false,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
}

function drop(race: Race, socket: Socket, failure: Failure): void {
  socket.destroy();
  if (!race.running.delete(socket)) return;
  race.failure = failure;
  startNext(race);
}

/** The address that was checked must be the address that was reached. */
function isPeer(socket: Socket, target: Dialable): boolean {
  const peer = parseIpAddress(socket.remoteAddress ?? "");
  return peer?.text === target.address.text && socket.remotePort === target.port;
}

/** IPv6 first, then in turn (RFC 8305 section 4), each family in the order given. */
function interleave(candidates: readonly Dialable[]): Dialable[] {
  const six = candidates.filter(({ address }) => address.family === 6);
  const four = candidates.filter(({ address }) => address.family === 4);
  const longest = Math.max(six.length, four.length);
  return Array.from({ length: longest }, (_, index) => [six[index], four[index]])
    .flat()
    .filter((target) => target !== undefined);
}

/** Says the kind of trouble alone: the system's own message names the address. */
function failureOf(error: Error): Failure {
  const code = "code" in error ? String(error.code) : "";
  if (OWN_FAULTS.has(code))
    return new Failure("E_CONNECT", "gate", "The gate has no socket left to dial with");
  if (code === "ETIMEDOUT") return timedOut();
  if (code === "ECONNREFUSED")
    return new Failure("E_CONNECT", "upstream", "The upstream refused the connection");
  return new Failure("E_CONNECT", "upstream", "The upstream cannot be reached");
}

function timedOut(): Failure {
  return new Failure("E_TIMEOUT", "upstream", "The upstream did not answer in time");
}

function abandoned({ reason }: AbortSignal): Failure {
  return reason instanceof Failure
    ? reason
    : new Failure("E_CONNECT", "client", "Nobody waits for the upstream any more");
}
