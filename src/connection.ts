/** One connection, before and around its exchanges: refuse it, tunnel it, or look inside. */

import type { Socket } from "node:net";
import { answerInbound, CONNECTED } from "./accept/answer.ts";
import type { Asking, Http1Ends, Passage } from "./accept/arrival.ts";
import type { Cap } from "./accept/connection-caps.ts";
import { endTls } from "./accept/end-tls.ts";
import { Http2Connection, type Http2Ends } from "./accept/h2-connection.ts";
import { Http1Connection } from "./accept/http1-connection.ts";
import { sayLast } from "./accept/last-word.ts";
import { looksLikeHttp, peek } from "./accept/peek.ts";
import { type Answer, aboutOf, answerFailure, refusalOf } from "./accept/refusal.ts";
import { admit } from "./admit.ts";
import { parseIpAddress } from "./base/ip.ts";
import { seatFor } from "./base/roster.ts";
import { decideConnection } from "./decide/decide-connection.ts";
import { runExchange } from "./exchange.ts";
import { nameOf } from "./identify/identify-destination.ts";
import { mirror, type Trouble } from "./mirror.ts";
import type { Door } from "./model/arrival.ts";
import { type Denial, deny, type Permit } from "./model/decision.ts";
import type { Listener, Question } from "./model/exchange.ts";
import { asFailure, type Failure } from "./model/failure.ts";
import type { HttpVersion, Raw } from "./model/inbound.ts";
import { hasToBeAsked, narrow } from "./narrow.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { runSocks } from "./socks.ts";
import { runTunnel, type TunnelEnd } from "./tunnel.ts";
import { tlsAlert } from "./wire/tls-alert.ts";
import { ask, type ClientConnection, type InForce, isStranger, type World } from "./world.ts";

/** TLS alert `access_denied`, RFC 8446 section 6.2. */
const ACCESS_DENIED = 49;

/** A client's connection to the explicit proxy. Returns at once; the rest follows in events. */
export function runConnection(socket: Socket, listener: Listener, world: World): void {
  const address = parseIpAddress(socket.remoteAddress ?? "")?.text ?? "";
  const cap = admit(socket, address, listener, world);
  if (cap === undefined) return;
  serve(
    { socket, transport: socket },
    { listener, address, tunnel: undefined, scheme: "http", serverName: undefined },
    cap,
    world,
  );
}

/** Reads requests off a connection until it ends; each is an exchange, or a CONNECT. */
export function serve(ends: Http1Ends & Inner, door: Door, cap: Cap, world: World): ClientConnection {
  const { trouble, asked } = ends;
  const connection = new Http1Connection(
    ends,
    door,
    {
      request: (arrival) => {
        asked?.();
        if (arrival.request.method === "CONNECT") void runConnect(arrival, cap, world);
        else void runExchange(trouble === undefined ? arrival : { ...arrival, trouble }, cap, world);
      },
      malformed: (failure) => {
        asked?.();
        return recordMalformed(failure, "http/1.1", door, world);
      },
      closed: () => void world.connections.remove(seat),
      // Inside a tunnel, or in a jail, nobody was told of a SOCKS proxy.
      ...(door.listener === "explicit" && door.tunnel === undefined
        ? { socks: (raw: Raw) => runSocks(raw, ends.transport, { door, cap, world, connect: runConnect }) }
        : {}),
    },
    world,
  );
  const seat = seatFor(connection);
  world.connections.add(seat);
  // Whoever looked at its first bytes has stopped it.
  ends.socket.resume();
  return connection;
}

/** The same for HTTP/2, where a CONNECT is an exchange to be refused: nothing goes through a tunnel in a tunnel. */
function serveHttp2(ends: Http2Ends & Inner, door: Door, cap: Cap, world: World): ClientConnection {
  const { trouble, asked } = ends;
  const connection = new Http2Connection(
    ends,
    door,
    {
      request: (arrival) => {
        asked?.();
        void runExchange({ ...arrival, trouble }, cap, world);
      },
      malformed: (failure) => {
        asked?.();
        return recordMalformed(failure, "h2", door, world);
      },
      closed: () => void world.connections.remove(seat),
    },
    world,
  );
  const seat = seatFor(connection);
  world.connections.add(seat);
  return connection;
}

/** What is known of a connection that is looked into. */
interface Inner {
  /** What the dial before the handshake came to. */
  readonly trouble?: Trouble | undefined;
  /** Called at each request, read or malformed: each of them has a record. */
  readonly asked?: (() => void) | undefined;
}

function recordMalformed(failure: Failure, protocol: HttpVersion, door: Door, world: World): Answer {
  const record = new ExchangeDraft(world.recorder, door);
  record.policy = world.inForce().digest;
  record.protocol = protocol;
  if (door.tunnel !== undefined) record.asked(door.tunnel);
  const answer = answerFailure(failure, aboutOf(record));
  record.failed(failure);
  record.status = answer.status;
  record.end();
  return answer;
}

/** CONNECT: decided on its name alone. Ends in a record unless the requests inside make their own. */
async function runConnect(arrival: Asking, cap: Cap, world: World): Promise<void> {
  const { inbound, door } = arrival;
  const record = new ExchangeDraft(world.recorder, door);
  record.method = "CONNECT";
  record.visibility = "destination";
  record.protocol = "tls-tunnel";
  try {
    const end = await proceed(arrival, cap, record, world);
    if (end === "inspected") return;
    if (end !== undefined) refuse(end, arrival, record, world);
  } catch (error) {
    const failure = asFailure(error);
    record.failed(failure);
    if (inbound.responded === undefined) answerInbound(inbound, answerFailure(failure, aboutOf(record)));
    // Nobody else holds it any more: neither a deadline nor a reader would ever close it.
    else if (!arrival.transport.destroyed) arrival.transport.resetAndDestroy();
  }
  record.status = inbound.responded;
  record.end();
}

/** A denial, `inspected` where records follow from inside, or undefined where a tunnel came to its end. */
async function proceed(
  arrival: Asking,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Denial | "inspected" | undefined> {
  const force = world.inForce();
  record.policy = force.digest;
  const asked = ask(arrival, "destination", force);
  record.asked(asked);
  if (asked.denial !== undefined) return asked.denial;
  const { question } = asked;
  // A tunnel inside a tunnel would be judged by nobody (M01).
  if (arrival.door.tunnel !== undefined || arrival.door.original !== undefined) return deny("method-refused");
  if (!cap.claim(question.client.sandbox)) return deny("limit-exceeded");
  return carryOut({ arrival, question, force, cap, record, world });
}

export interface Connecting {
  readonly arrival: Passage;
  readonly question: Question;
  readonly force: InForce;
  readonly cap: Cap;
  readonly record: ExchangeDraft;
  readonly world: World;
}

/** Does with a connection what policy says of its question: refuse it, look inside, or relay it unseen. */
export async function carryOut(connecting: Connecting): Promise<Denial | "inspected" | undefined> {
  const { arrival, question, force, record, world } = connecting;
  const decision = decideConnection(question, force.policy);
  if (decision.verdict === "deny") return decision;
  if (decision.verdict === "inspect") {
    return lookInside(arrival.inbound.takeOver(CONNECTED), connecting, decision.permit);
  }
  record.decided(decision.allowance);
  if (decision.opaque) record.protocol = "tcp";
  if (hasToBeAsked(question, decision.allowance, force)) {
    const { allowance } = decision;
    const narrowing = { verdict: "ask", question, allowance, force, inbound: arrival.inbound } as const;
    const narrowed = await narrow(narrowing, record, world);
    const now = world.inForce();
    record.policy = now.digest;
    if (now !== force) return carryOut({ ...connecting, force: now });
    record.decided(narrowed.decision);
    if (narrowed.decision.verdict === "deny") return narrowed.decision;
  }
  const end: TunnelEnd = await runTunnel({ arrival, question, decision, force, record, world });
  if (end.kind === "overtaken") {
    const now = world.inForce();
    record.policy = now.digest;
    return carryOut({ ...connecting, force: now });
  }
  if (end.kind === "inspect") return lookInside(end.raw, connecting, decision.allowance.permit);
  return end.denial;
}

/**
 * Each request inside has its record. Where none comes, the connection has: its name was resolved and maybe dialled,
 * which would otherwise be seen by nobody.
 */
async function lookInside(
  raw: Raw,
  { arrival, question, cap, record, world }: Connecting,
  permit: Permit,
): Promise<Denial | "inspected"> {
  const { inbound, transport } = arrival;
  let silent = true;
  const asked = (): void => {
    silent = false;
  };
  const end = await inspect({ raw, arrival, question, cap, world, asked });
  if (end !== "inspected") return end;
  const left = (): void => {
    if (!silent) return;
    record.decided({ verdict: "allow", reason: "rule-allows", would: undefined, permit });
    record.status = inbound.responded;
    record.end();
  };
  if (transport.closed) left();
  else transport.once("close", left);
  return end;
}

export interface Inspection {
  readonly raw: Raw;
  readonly arrival: Passage;
  readonly question: Question;
  readonly cap: Cap;
  readonly world: World;
  readonly asked?: (() => void) | undefined;
}

/** Ends the client's TLS, or reads its plain HTTP; what is inside arrives as requests of its own. */
export async function inspect({
  raw,
  arrival,
  question,
  cap,
  world,
  asked,
}: Inspection): Promise<Denial | "inspected"> {
  const socket = arrival.transport;
  const peeked = await peek(raw, world, world.limits.handshake_timeout);
  const { client, destination } = question;
  const tunnel = { client, destination };
  if (peeked.kind === "other") {
    if (!looksLikeHttp(peeked.bytes)) return deny("needs-inspection");
    socket.unshift(peeked.bytes);
    live(
      serve({ socket, transport: socket, asked }, { ...arrival.door, scheme: "http", tunnel }, cap, world),
      question,
      arrival.door,
      world,
    );
    return "inspected";
  }
  const { serverName } = peeked.hello;
  const { limits, deadlines } = world;
  const { offer, websockets, trouble } = await mirror(peeked.hello, question, socket, world);
  const context = world.leaves.contextFor(client.sandbox, serverName ?? nameOf(destination));
  if (context === undefined) return deny("limit-exceeded");
  const tls = await endTls(socket, peeked.bytes, context, { limits, deadlines, alpn: offer });
  const door: Door = { ...arrival.door, scheme: "https", tunnel, serverName };
  const ends = { socket: tls, transport: socket, websockets, trouble, asked };
  const inside = tls.alpnProtocol === "h2" ? serveHttp2 : serve;
  live(inside(ends, door, cap, world), question, door, world);
  return "inspected";
}

/** An inspected connection lives as long as its name may be asked for at all. */
function live(connection: ClientConnection, question: Question, door: Door, world: World): void {
  const entry = {
    holds: (force: InForce) =>
      !isStranger(door, question.client, force) &&
      decideConnection(question, force.policy).verdict !== "deny",
    cut: () => connection.cut(),
  };
  world.live.add(entry);
  connection.whenClosed(() => world.live.remove(entry));
}

/** In words where the CONNECT is unanswered; after that in an alert, for nobody reads HTTP there any more. */
function refuse(denial: Denial, { inbound, transport }: Passage, record: ExchangeDraft, world: World): void {
  record.refused(denial);
  if (inbound.responded === undefined) {
    answerInbound(inbound, refusalOf(denial, aboutOf(record)));
    return;
  }
  sayLast(transport, tlsAlert(ACCESS_DENIED), world);
}
