/** A connection of a client that knows of no proxy: its first bytes say the name, and its address is never dialled. */

import type { Socket } from "node:net";
import type { Cap } from "./accept/connection-caps.ts";
import { sayLast } from "./accept/last-word.ts";
import { looksLikeHttp, type Peeked, peek } from "./accept/peek.ts";
import { RawInbound } from "./accept/raw-inbound.ts";
import { admit } from "./admit.ts";
import { seatFor } from "./base/roster.ts";
import { carryOut, inspect, serve } from "./connection.ts";
import { decideConnection } from "./decide/decide-connection.ts";
import type { Door, Original } from "./model/arrival.ts";
import { type Denial, deny } from "./model/decision.ts";
import type { Destination, Listener, Question, Scheme } from "./model/exchange.ts";
import { asFailure, Failure } from "./model/failure.ts";
import type { ExchangeRecord } from "./model/record.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { ALERT, tlsAlert } from "./wire/tls-alert.ts";
import { type ClientConnection, refuseOriginal, unnamed, type World } from "./world.ts";

const NOTHING = Buffer.alloc(0);

type Hello = Extract<Peeked, { kind: "hello" }>;
/** `handed`: whoever serves the connection from here on writes its records. */
type End = Denial | "handed" | undefined;

interface Judging {
  readonly socket: Socket;
  readonly door: Door;
  readonly original: Original;
  readonly cap: Cap;
  readonly record: ExchangeDraft;
  readonly world: World;
}

/** Returns at once; the rest follows in events. */
export function runTransparent(
  socket: Socket,
  original: Original,
  listener: Extract<Listener, "jail" | "gateway">,
  world: World,
): void {
  const { address } = original.client;
  const cap = admit(socket, address, listener, world);
  if (cap === undefined) return;
  const door: Door = {
    listener,
    address,
    tunnel: undefined,
    original,
    scheme: "http",
    serverName: undefined,
  };
  const record = new ExchangeDraft(world.recorder, door);
  record.visibility = "destination";
  record.protocol = "tcp";
  const judged = seatFor(underJudgement(socket));
  world.connections.add(judged);
  // Whoever it was handed to has entered it anew.
  void judge({ socket, door, original, cap, record, world }).finally(() => world.connections.remove(judged));
}

/** Nothing was asked for yet, or a tunnel stands, which is cut by its own entry. */
function underJudgement(socket: Socket): ClientConnection {
  const cut = (): void => void socket.resetAndDestroy();
  return {
    drain: () => {
      if (socket.bytesRead === 0 && socket.bytesWritten === 0) cut();
    },
    cut,
    whenClosed: (callback) => void socket.once("close", callback),
  };
}

/** Ends in one record, unless what is inside makes its own. */
async function judge(judging: Judging): Promise<void> {
  const { socket, record } = judging;
  try {
    const end = await proceed(judging);
    if (end === "handed") return;
    if (end !== undefined) refuse(end, judging);
  } catch (error) {
    const failure = asFailure(error);
    record.failed(failure);
    if (!socket.destroyed) socket.resetAndDestroy();
  }
  record.end();
}

async function proceed(judging: Judging): Promise<End> {
  const { socket, original, cap, record, world } = judging;
  const force = world.inForce();
  const outer = destinationOf(original);
  record.policy = force.digest;
  record.asked({ client: original.client, destination: outer });
  if (!cap.claim(original.client.sandbox)) return deny("limit-exceeded");

  // Under a tcp rule nothing is waited for: the server may be the one that speaks first.
  const loopback = refuseOriginal(original) !== undefined;
  const question = questionOf(original, outer, "https");
  const decision = decideConnection(question, force.policy);
  if (!loopback && decision.verdict === "tunnel" && decision.opaque) {
    return carry(question, new RawInbound(socket, NOTHING), judging);
  }
  const peeked = await peek({ socket, early: NOTHING }, world, world.limits.handshake_timeout);
  record.policy = world.inForce().digest;
  if (peeked.kind === "hello") return proceedTls(peeked, judging);
  if (looksLikeHttp(peeked.bytes)) {
    socket.unshift(peeked.bytes);
    serve({ socket, transport: socket }, judging.door, cap, world);
    return "handed";
  }
  if (loopback) return deny("loopback");
  return carry(questionOf(original, outer, "tcp"), new RawInbound(socket, peeked.bytes), judging);
}

/** SNI names the destination; without one it is the very address, where that is no name's. */
async function proceedTls({ hello, bytes }: Hello, judging: Judging): Promise<End> {
  const { original, record, world } = judging;
  const { serverName } = hello;
  record.protocol = "tls-tunnel";
  if (serverName === undefined) {
    if (refuseOriginal(original) !== undefined) return deny("loopback");
    if (original.name !== undefined) return deny("no-name");
    const question = questionOf(original, destinationOf(original), "https");
    return carry(question, new RawInbound(judging.socket, bytes), judging);
  }
  const destination: Destination = { kind: "name", host: serverName, port: original.port };
  record.asked({ client: original.client, destination });
  const question = questionOf(original, destination, "https");
  const decision = decideConnection(question, world.inForce().policy);
  if (decision.verdict === "deny") return explain(decision, question, bytes, judging);
  // In words it could not be said: inside, the name would be asked for before anybody is refused.
  if (refuseOriginal(original) !== undefined) return deny("loopback");
  return tunnelOrExplain(question, bytes, judging);
}

/** What goes wrong before any byte was passed on can still be said in words, inside TLS. */
async function tunnelOrExplain(question: Question, bytes: Buffer, judging: Judging): Promise<End> {
  const inbound = new RawInbound(judging.socket, bytes);
  try {
    const end = await carry(question, inbound, judging);
    if (end === undefined || end === "handed" || inbound.taken) return end;
    return await explain(end, question, bytes, judging);
  } catch (error) {
    if (inbound.taken || !(error instanceof Failure) || error.fault === "client") throw error;
    if (error.code === "E_TIMEOUT" || !mayInspect(question, judging.world)) throw error;
    return lookInside(question, bytes, judging);
  }
}

/**
 * Ends TLS with a leaf for the refused name, so that the requests inside are refused in words, each with its record.
 * Where none comes, or no leaf is to be had, the refusal is recorded here.
 */
async function explain(denial: Denial, question: Question, bytes: Buffer, judging: Judging): Promise<End> {
  const { socket, record, world } = judging;
  if (!mayInspect(question, world)) return denial;
  let heard = false;
  const listening = overheard(world, () => {
    heard = true;
  });
  try {
    const end = await lookInside(question, bytes, { ...judging, world: listening });
    if (end !== "handed") return denial;
  } catch {
    // The client does not trust our CA, or left: that it was refused is what matters.
    record.refused(denial);
    return undefined;
  }
  socket.once("close", () => {
    if (heard) return;
    record.refused(denial);
    record.end();
  });
  return "handed";
}

async function carry(question: Question, inbound: RawInbound, judging: Judging): Promise<End> {
  const { socket, door, original, cap, record, world } = judging;
  const arrival = { door, inbound, transport: socket };
  const force = world.inForce();
  const end = await carryOut({ arrival, question, force, cap, record, world });
  if (end === undefined) return undefined;
  return end === "inspected" ? "handed" : unnamed(end, original, question.destination);
}

async function lookInside(
  question: Question,
  bytes: Buffer,
  { socket, door, cap, world }: Judging,
): Promise<End> {
  const arrival = { door, inbound: new RawInbound(socket, bytes), transport: socket };
  const end = await inspect({ raw: { socket, early: bytes }, arrival, question, cap, world });
  return end === "inspected" ? "handed" : end;
}

/** `intercept: never` holds for refusals too. */
function mayInspect(question: Question, world: World): boolean {
  const decision = decideConnection(question, world.inForce().policy);
  return decision.verdict !== "tunnel" || decision.mayInspect;
}

/** The same world, whose recorder tells when the first record is written. */
function overheard(world: World, heard: () => void): World {
  const recorder = {
    ...world.recorder,
    exchange: (record: ExchangeRecord) => {
      heard();
      world.recorder.exchange(record);
    },
  };
  return Object.create(world, { recorder: { value: recorder } });
}

/** Nobody reads HTTP here: an alert where there is TLS, else a reset. */
function refuse(denial: Denial, { socket, record, world }: Judging): void {
  record.refused(denial);
  if (record.protocol !== "tls-tunnel") {
    socket.resetAndDestroy();
    return;
  }
  sayLast(socket, tlsAlert(ALERT.accessDenied), world);
}

function destinationOf({ name, address, port }: Original): Destination {
  return name === undefined ? { kind: "address", address, port } : { kind: "name", host: name, port };
}

function questionOf({ client }: Original, destination: Destination, scheme: Scheme): Question {
  return { client, destination, scheme, visibility: "destination", request: undefined };
}
