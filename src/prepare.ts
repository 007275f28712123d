/** Everything up to the wire: who asks whom, whether it may, and what then leaves. Identify, decide, transform. */
import type { Arrival } from "./accept/arrival.ts";
import type { Cap } from "./accept/connection-caps.ts";
import { decideExchange } from "./decide/decide-exchange.ts";
import type { Trouble } from "./mirror.ts";
import type { Door } from "./model/arrival.ts";
import { type Decision, type Denial, deny, type Permit } from "./model/decision.ts";
import type { Question } from "./model/exchange.ts";
import type { HttpVersion, Inbound } from "./model/inbound.ts";
import type { Leg, Route } from "./model/leg.ts";
import type { SigningSource } from "./model/signing.ts";
import { hasToBeAsked, type Narrowed, type Narrowing } from "./narrow.ts";
import type { ExchangeDraft } from "./record/draft.ts";
import { scrubLeg } from "./scrub.ts";
import { needsBody, refuseBody, sign, signingOf } from "./signing.ts";
import { type Swapped, swapPlaceholders } from "./swap.ts";
import { dropFields, type Setting, setFields } from "./transform/set-fields.ts";
import {
  type RenderedInjection,
  transformRequest,
  transformRequestTrailers,
} from "./transform/transform-request.ts";
import { transformResponse, transformResponseTrailers } from "./transform/transform-response.ts";
import { websocketRequest } from "./wire/upgrade.ts";
import { ask, type InForce, renderInjections, routeOf, unnamed, type World } from "./world.ts";

/** A request, and what is known already of the way to its upstream. */
export type PendingExchange = Arrival & {
  readonly trouble?: Trouble | undefined;
  /** Its body, where that is signed; `inbound` then gives it again. */
  readonly held?: Buffer;
  /** What the operator's hooks said of it. */
  readonly narrowed?: Narrowed;
};

export interface Ready {
  readonly inbound: Inbound;
  readonly door: Door;
  readonly force: InForce;
  readonly question: Question;
  readonly leg: Leg;
  readonly route: Route;
  readonly trouble: Trouble | undefined;
  readonly signing: SigningSource | undefined;
  readonly swapped: Swapped;
  readonly stop?: undefined;
}

/** Policy says no, or the operator's hooks have yet to be asked, or something has yet to be there. */
export type Stop = Denial | Narrowing | Supplying | Holding;

/** The body is signed. */
interface Holding {
  readonly verdict: "hold";
  readonly rule: string | undefined;
}

/** What is to be put on has yet to be had. */
export interface Supplying {
  readonly verdict: "wait";
  readonly wait: () => Promise<void>;
}

export type Prepared = Ready | { readonly stop: Stop };

const NONE: readonly Setting[] = [];
/** What the upstream of an HTTP/2 client is offered. */
const BOTH: readonly HttpVersion[] = ["h2", "http/1.1"];

/** In one turn and under one policy, but for a signature, which takes a moment longer. */
export function prepare(
  arrival: PendingExchange,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Prepared | Promise<Prepared> {
  const ready = judge(arrival, cap, record, world);
  return ready.stop === undefined && ready.signing !== undefined ? signed(ready, arrival.held) : ready;
}

function judge(arrival: PendingExchange, cap: Cap, record: ExchangeDraft, world: World): Prepared {
  const force = world.inForce();
  record.policy = force.digest;
  const asked = ask(arrival, "request", force);
  record.asked(asked);
  if (asked.denial !== undefined) return { stop: asked.denial };
  const { question } = asked;
  // In HTTP/2 a CONNECT comes as a stream, inside a tunnel: what went through would be judged by nobody (H11, M01).
  if (arrival.request.method === "CONNECT") return { stop: deny("method-refused") };
  if (!cap.claim(question.client.sandbox)) return { stop: deny("limit-exceeded") };

  const narrowed = arrival.narrowed?.force === force ? arrival.narrowed : undefined;
  const decision = decide({ question, force, inbound: arrival.inbound }, narrowed);
  if (decision.verdict === "ask") return { stop: decision };
  record.decided(decision);
  if (decision.verdict === "deny") {
    return { stop: unnamed(decision, arrival.door.original, question.destination) };
  }

  const { permit } = decision;
  const put = putOn(permit, arrival, force);
  if (put.stop !== undefined) return { stop: put.stop };
  const { injections, generation, signing } = put;
  const bare = legOf(arrival, permit, injections, narrowed?.settings ?? NONE);
  const putIn = (place: string): void => record.alsoInjected(place);
  const swapped = swapPlaceholders({ question, allowance: decision, leg: bare, putIn }, force);
  if (swapped.stop !== undefined) return { stop: swapped.stop };
  const scrubbed =
    swapped.secrets.length === 0
      ? permit
      : { ...permit, injections: [...permit.injections, ...swapped.secrets] };
  const leg = scrubLeg(swapped.leg, scrubbed, {
    secrets: force.secrets,
    generation: generation + swapped.generation,
    room: () => cap.room("decoding_bytes_per_sandbox"),
    found: () => {
      record.scrubbed = true;
    },
  });
  if (leg.upgrade) record.protocol = "ws";
  const { inbound, door, trouble } = arrival;
  const http1 = routeOf(permit, generation + swapped.generation, force, world);
  const route = inbound.protocol === "h2" ? { ...http1, alpn: BOTH } : http1;
  return { inbound, door, force, question, leg, route, trouble, signing, swapped };
}

async function signed(ready: Ready, body: Buffer | undefined): Promise<Ready | { readonly stop: Denial }> {
  const { route, leg, signing, force } = ready;
  if (signing === undefined) return ready;
  const { permit } = route;
  const refused = body === undefined ? undefined : refuseBody(permit, body);
  if (refused !== undefined) return { stop: refused };
  const head = await sign(leg.head, { permit, signing, body }, force.secrets);
  return "verdict" in head ? { stop: head } : { ...ready, leg: { ...leg, head } };
}

interface PutOn {
  readonly injections: readonly RenderedInjection[];
  readonly generation: string;
  readonly signing: SigningSource | undefined;
  readonly stop?: undefined;
}

/** What the gate adds, or what that has to wait for. */
function putOn(
  permit: Permit,
  pending: PendingExchange,
  { secrets }: InForce,
): PutOn | { readonly stop: Stop } {
  const rendered = renderInjections(permit, secrets);
  if (rendered.denial !== undefined) return { stop: rendered.denial };
  if (rendered.wait !== undefined) return { stop: { verdict: "wait", wait: rendered.wait } };
  const signing = signingOf(permit);
  // What follows an extended CONNECT are frames, as after an upgrade in HTTP/1.1: nothing to wait for.
  const framed = signing === undefined || isExtended(pending);
  if (!framed && needsBody(signing, pending.inbound, pending.held)) {
    return { stop: { verdict: "hold", rule: permit.rule } };
  }
  return { injections: rendered.injections, generation: rendered.generation, signing };
}

/** What policy says, and where it allows, what the hooks made of that. */
function decide(
  asked: Omit<Narrowing, "verdict" | "allowance">,
  narrowed: Narrowed | undefined,
): Decision | Narrowing {
  const { question, force } = asked;
  const decision = decideExchange(question, force.policy);
  if (decision.verdict === "deny") return decision;
  if (narrowed !== undefined) return narrowed.decision;
  return hasToBeAsked(question, decision, force)
    ? { verdict: "ask", allowance: decision, ...asked }
    : decision;
}

/** A WebSocket that is asked for in HTTP/2 (RFC 8441). */
function isExtended({ request, inbound }: Pick<PendingExchange, "request" | "inbound">): boolean {
  return inbound.protocol === "h2" && request.upgrade === "websocket";
}

function legOf(
  { request, inbound, held }: PendingExchange,
  permit: Permit,
  injections: readonly RenderedInjection[],
  settings: readonly Setting[],
): Leg {
  const upgrade = isExtended({ request, inbound }) || websocketRequest(request);
  const { destination, scheme } = permit;
  const trailers = inbound.protocol === "h2";
  const head = transformRequest(inbound.head, { destination, scheme, injections, upgrade, trailers });
  return {
    head: setFields(head, settings),
    framing: inbound.framing,
    upgrade,
    extended: isExtended({ request, inbound }),
    expectContinue: request.expectContinue && held === undefined,
    response: transformResponse,
    requestTrailers: (lines) => dropFields(transformRequestTrailers(lines, permit.injections), settings),
    responseTrailers: transformResponseTrailers,
  };
}
