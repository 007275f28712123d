/** What a client is offered inside its TLS: what the upstream speaks, so that being looked into changes nothing. */
import type { Socket } from "node:net";
import { decideConnection } from "./decide/decide-connection.ts";
import { nameOf } from "./identify/identify-destination.ts";
import type { ConnectionDecision, Permit } from "./model/decision.ts";
import type { Question } from "./model/exchange.ts";
import { Failure } from "./model/failure.ts";
import type { HttpVersion } from "./model/inbound.ts";
import type { Refused, Route } from "./model/leg.ts";
import type { ClientHello } from "./wire/client-hello.ts";
import { type InForce, routeOf, type World } from "./world.ts";

export interface Mirrored {
  /** For the client's handshake; empty: no protocol is negotiated. */
  readonly offer: readonly string[];
  /** The upstream takes an extended CONNECT. */
  readonly websockets: boolean;
  /** Why nothing could be learnt. */
  readonly trouble: Trouble | undefined;
}

/** What a dial came to a moment ago; good for the requests that the handshake was made for. */
export interface Trouble {
  readonly force: InForce;
  /** Monotonic milliseconds. */
  readonly until: number;
  readonly outcome: Refused | Failure;
}

const PLAIN: Mirrored = { offer: ["http/1.1"], websockets: false, trouble: undefined };
/** From the end of the dial to the first request: the client's handshake and a round trip. */
const TROUBLE_MS = 2_000;

/**
 * Only a client that offers HTTP/2 leaves a choice, and only a name that policy admits is asked; the connection that
 * was made to ask serves the first request. Where nothing is to be learnt, the client gets what it likes best, and
 * is told of the refusal or the failure in it.
 */
export async function mirror(
  { alpn, serverName }: Pick<ClientHello, "alpn" | "serverName">,
  question: Question,
  transport: Socket,
  world: World,
): Promise<Mirrored> {
  const offered = alpn.filter(isHttp);
  const [best] = offered;
  if (best === undefined || !offered.includes("h2")) return PLAIN;
  // Two names are no name: this will be refused, and nobody is asked on behalf of a refusal.
  if (serverName !== undefined && serverName !== nameOf(question.destination)) {
    return { offer: [best], websockets: false, trouble: undefined };
  }
  const force = world.inForce();
  const permit = permitOf(decideConnection(question, force.policy));
  if (permit === undefined) return { offer: [best], websockets: false, trouble: undefined };

  const route: Route = { ...routeOf(permit, "", force, world), alpn: offered };
  const known = world.forwarder.recall(route);
  if (known !== undefined) return mirrored(offered, known.protocol, known.websockets);
  try {
    const probed = await inTime(transport, world, (signal) => world.forwarder.probe(route, signal));
    if (probed === undefined) return { offer: [best], websockets: false, trouble: undefined };
    if (probed.kind === "ready") {
      return mirrored(offered, probed.upstream.protocol, probed.upstream.websockets);
    }
    return { offer: [best], websockets: false, trouble: troubleOf(probed, force, world) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { offer: [best], websockets: false, trouble: troubleOf(error, force, world) };
  }
}

function mirrored(offered: readonly string[], spoken: HttpVersion, websockets: boolean): Mirrored {
  return { offer: offered.includes(spoken) ? [spoken] : [], websockets, trouble: undefined };
}

function isHttp(protocol: string): protocol is HttpVersion {
  return protocol === "h2" || protocol === "http/1.1";
}

function permitOf(decision: ConnectionDecision): Permit | undefined {
  if (decision.verdict === "deny") return undefined;
  return decision.verdict === "inspect" ? decision.permit : decision.allowance.permit;
}

function troubleOf(outcome: Refused | Failure, force: InForce, world: World): Trouble {
  return { force, until: world.deadlines.now() + TROUBLE_MS, outcome };
}

/** Undefined where it takes longer than a client's handshake should wait. Throws where the client leaves. */
async function inTime<T>(
  transport: Socket,
  { limits }: World,
  step: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const controller = new AbortController();
  const late = new Failure("E_TIMEOUT", "upstream", "The upstream could not be asked in time");
  const timer = setTimeout(() => controller.abort(late), limits.alpn_timeout);
  const left = (): void => {
    controller.abort(new Failure("E_BAD_HELLO", "client", "The client left before the handshake"));
  };
  transport.once("close", left);
  try {
    return await step(controller.signal);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    if (controller.signal.reason === late) return undefined;
    throw controller.signal.reason;
  } finally {
    clearTimeout(timer);
    transport.off("close", left);
  }
}
