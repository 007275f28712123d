/** A tunnel: bytes that nobody looks into, once their outside has been checked against what was decided. */
import { CONNECTED } from "./accept/answer.ts";
import type { Passage } from "./accept/arrival.ts";
import { looksLikeHttp, peek } from "./accept/peek.ts";
import { decideConnection } from "./decide/decide-connection.ts";
import { splice } from "./forward/splice.ts";
import { nameOf } from "./identify/identify-destination.ts";
import { type ConnectionDecision, type Denial, deny, type Reason } from "./model/decision.ts";
import type { IpAddress, Question } from "./model/exchange.ts";
import { cutOff, Failure } from "./model/failure.ts";
import type { Raw } from "./model/inbound.ts";
import type { ExchangeDraft } from "./record/draft.ts";
import { type ClientHello, readClientHello } from "./wire/client-hello.ts";
import { type InForce, isStranger, reach, refusePeer, routeOf, type World } from "./world.ts";

export interface Tunnelling {
  readonly arrival: Passage;
  readonly question: Question;
  readonly decision: Extract<ConnectionDecision, { verdict: "tunnel" }>;
  readonly force: InForce;
  readonly record: ExchangeDraft;
  readonly world: World;
}

export type TunnelEnd =
  | { readonly kind: "ended"; readonly denial: Denial | undefined }
  /** Another policy came into force before the CONNECT was answered: it is to be decided again, from the start. */
  | { readonly kind: "overtaken" }
  /** What came cannot pass unseen, but may be looked into. */
  | { readonly kind: "inspect"; readonly raw: Raw };

/**
 * Dials first, so that trouble upstream is answered to the CONNECT in words; nothing of the client's is sent
 * before its ClientHello has been compared with the decided name.
 */
export async function runTunnel(tunnelling: Tunnelling): Promise<TunnelEnd> {
  const { arrival, decision, force, record, world } = tunnelling;
  const { permit } = decision.allowance;
  const route = routeOf(permit, "", force, world);
  const opened = await reach(arrival.inbound, world, (signal) => world.forwarder.open(route, signal));
  if (opened.kind === "refused") return { kind: "ended", denial: opened.denial };
  const { upstream } = opened;
  if (world.inForce() !== force) {
    upstream.socket.destroy();
    return { kind: "overtaken" };
  }
  const { peer } = upstream;
  const objection = (now: InForce): Denial | undefined => objectionOf(now, peer, tunnelling);
  const client = arrival.inbound.takeOver(CONNECTED);
  try {
    const checked = decision.opaque ? passing(client.early) : await checkHello(client, objection, tunnelling);
    if (checked.kind !== "pass") {
      upstream.socket.destroy();
      return checked;
    }
    record.leaves();
    return await pass({ socket: client.socket, early: checked.early }, upstream, objection, tunnelling);
  } catch (error) {
    upstream.socket.destroy();
    client.socket.destroy();
    throw error;
  }
}

type Objection = (force: InForce) => Denial | undefined;

type Checked = { readonly kind: "pass"; readonly early: Buffer } | TunnelEnd;

/** TLS whose SNI is the decided name passes; all else is refused, or looked into. */
async function checkHello(client: Raw, objection: Objection, tunnelling: Tunnelling): Promise<Checked> {
  const { question, decision, force, world } = tunnelling;
  const { permit } = decision.allowance;
  const peeked = await peek(client, world, world.limits.handshake_timeout);
  const raw: Raw = { socket: client.socket, early: peeked.bytes };
  if (peeked.kind === "other") {
    const inspectable = decision.mayInspect && looksLikeHttp(peeked.bytes);
    return inspectable ? { kind: "inspect", raw } : ended("needs-inspection", permit.rule);
  }
  const reason = disagreement(peeked.hello, question);
  if (reason !== undefined) return ended(reason, permit.rule);
  // The name that ECH hides could be any; ended here, the inner hello never leaves (D18, D19).
  if (peeked.hello.ech) {
    return decision.mayInspect ? { kind: "inspect", raw } : ended("needs-inspection", permit.rule);
  }
  const now = world.inForce();
  const overtaken = now === force ? undefined : objection(now);
  return overtaken === undefined ? passing(peeked.bytes) : { kind: "ended", denial: overtaken };
}

function passing(early: Buffer): Checked {
  return { kind: "pass", early };
}

/** Under a tcp rule whoever speaks first may; the client's first bytes are judged as they come. */
async function pass(
  client: Raw,
  upstream: Raw,
  objection: Objection,
  tunnelling: Tunnelling,
): Promise<TunnelEnd> {
  const { question, decision, record, world } = tunnelling;
  const { permit } = decision.allowance;
  let refusal: Reason | undefined;
  /** A visible SNI must be the decided name, under a tcp rule too. */
  function admit(bytes: Buffer): boolean {
    const read = readClientHello(bytes, world.limits);
    if (read.kind !== "hello") return read.kind === "not-tls";
    if (disagreement(read.hello, question) !== "names-disagree") return true;
    refusal = "names-disagree";
    throw new Failure("E_BAD_HELLO", "client", "The hello is for another name");
  }
  const { limits, deadlines, turn } = world;
  const joined = splice(client, upstream, decision.opaque ? { limits, deadlines, turn, admit } : world);
  const live = {
    holds: (force: InForce) => objection(force) === undefined,
    cut: () => joined.cut(cutOff()),
  };
  world.live.add(live);
  const spliced = await joined.done;
  world.live.remove(live);
  record.relayed(spliced);
  if (refusal !== undefined) return ended(refusal, permit.rule);
  if (spliced.failure === undefined) return { kind: "ended", denial: undefined };
  const now = objection(world.inForce());
  if (now !== undefined) return { kind: "ended", denial: now };
  throw spliced.failure;
}

/** What a policy has against a tunnel that stands: its name, what has passed unseen, or the address that it leads to. */
function objectionOf(
  force: InForce,
  peer: IpAddress | undefined,
  { arrival, question, decision: { opaque, allowance }, world }: Tunnelling,
): Denial | undefined {
  if (isStranger(arrival.door, question.client, force)) return deny("identity-unknown");
  const again = decideConnection(question, force.policy);
  if (again.verdict === "deny") return again;
  if (again.verdict === "inspect" || (opaque && !again.opaque)) {
    return deny("needs-inspection", allowance.permit.rule);
  }
  return refusePeer(again.allowance.permit, peer, force, world);
}

/** Why this hello may not go where CONNECT was granted; undefined where it may. */
function disagreement(hello: ClientHello, question: Question): Reason | undefined {
  const { destination } = question;
  if (hello.serverName === undefined) return destination.kind === "address" ? undefined : "no-name";
  return hello.serverName === nameOf(destination) ? undefined : "names-disagree";
}

function ended(reason: Reason, rule: string | undefined): TunnelEnd {
  return { kind: "ended", denial: deny(reason, rule) };
}
