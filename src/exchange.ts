/**
 * One exchange, end to end. Read this file first: its calls, top to bottom, are the stage folders.
 *
 *   accept -> identify -> decide -> transform -> forward -> record
 *
 * Only the files beside this one import from more than one stage.
 */
import { answerInbound } from "./accept/answer.ts";
import type { Arrival } from "./accept/arrival.ts";
import type { Cap } from "./accept/connection-caps.ts";
import { aboutOf, answerFailure, refusalOf } from "./accept/refusal.ts";
import type { Live } from "./base/live-set.ts";
import { decideExchange } from "./decide/decide-exchange.ts";
import { type Relaying, relay } from "./forward/relay.ts";
import type { Trouble } from "./mirror.ts";
import type { Door } from "./model/arrival.ts";
import { type Decision, type Denial, deny, type Permit } from "./model/decision.ts";
import type { Question } from "./model/exchange.ts";
import { asFailure, cutOff, Failure } from "./model/failure.ts";
import type { HttpVersion, Inbound, Upstream } from "./model/inbound.ts";
import type { Acquired, Leg, Outcome, Route } from "./model/leg.ts";
import type { SigningSource } from "./model/signing.ts";
import { hasToBeAsked, type Narrowed, type Narrowing, narrow } from "./narrow.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { scrubLeg } from "./scrub.ts";
import { hold, needsBody, refuseBody, sign, signingOf } from "./signing.ts";
import { type Swapped, swapPlaceholders } from "./swap.ts";
import { dropFields, type Setting, setFields } from "./transform/set-fields.ts";
import {
  type RenderedInjection,
  transformRequest,
  transformRequestTrailers,
} from "./transform/transform-request.ts";
import { transformResponse, transformResponseTrailers } from "./transform/transform-response.ts";
import { isGrpc } from "./wire/grpc.ts";
import { websocketRequest } from "./wire/upgrade.ts";
import {
  ask,
  type InForce,
  isStranger,
  reach,
  refusePeer,
  renderInjections,
  routeOf,
  unnamed,
  type World,
} from "./world.ts";

/** A request, and what is known already of the way to its upstream. */
export type Asking = Arrival & {
  readonly trouble?: Trouble | undefined;
  /** Its body, where that is signed; `inbound` then gives it again. */
  readonly held?: Buffer;
  /** What the operator's hooks said of it. */
  readonly narrowed?: Narrowed;
};

const NONE: readonly Setting[] = [];
/** What the upstream of an HTTP/2 client is offered. */
const BOTH: readonly HttpVersion[] = ["h2", "http/1.1"];
/** How often an exchange whose upstream went away untouched is sent again. */
const SECOND_TRIES = 2;

/** Every arrival ends in exactly one record and, where anybody is there to read it, one answer. */
export async function runExchange(arrival: Asking, cap: Cap, world: World): Promise<void> {
  const { inbound, door } = arrival;
  const record = new ExchangeDraft(world.recorder, door);
  record.method = inbound.head.method;
  record.target = inbound.head.target;
  if (inbound.protocol === "h2") record.protocol = isGrpc(inbound.head.fields) ? "grpc" : "h2";
  // A connection of HTTP/1.1 has one exchange at a time, and is counted itself.
  const leave = inbound.protocol === "h2" ? cap.stream() : () => {};
  try {
    const refused = leave === undefined ? tooMany(door, record, world) : undefined;
    const end = refused ?? (await untilDecided(arrival, cap, record, world));
    if (end !== undefined) refuse(end, inbound, record);
  } catch (error) {
    fail(error, inbound, record);
  } finally {
    leave?.();
    record.status = inbound.responded;
    record.end();
  }
}

function tooMany({ tunnel }: Door, record: ExchangeDraft, world: World): Denial {
  record.policy = world.inForce().digest;
  if (tunnel !== undefined) record.asked(tunnel);
  return deny("limit-exceeded");
}

/** After each wait decided again, by the policy that is then in force. */
async function untilDecided(
  arrival: Asking,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Denial | undefined> {
  let asking = arrival;
  for (;;) {
    const end = await proceed(asking, cap, record, world);
    if (end?.verdict === "wait") await supplied(end, asking.inbound, record, world);
    else if (end?.verdict === "ask") asking = { ...asking, narrowed: await narrow(end, record, world) };
    else if (end?.verdict === "hold") {
      const held = await hold(asking.inbound, asking.request.expectContinue, world.limits);
      if (held.kind === "over") return deny("limit-exceeded", end.rule);
      asking = { ...asking, inbound: held.inbound, held: held.body };
    } else return end;
  }
}

/** Resolves with a denial where policy says no, or with whom to ask first; throws a Failure where something broke. */
async function proceed(
  arrival: Asking,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Stop | undefined> {
  for (let tries = 0; ; ) {
    const ready = await arrange(arrival, cap, record, world);
    if (ready.stop !== undefined) return ready.stop;

    const idle = world.forwarder.reuse(ready.route, tries > 0);
    // Nothing is waited for where nothing has to be: most exchanges find their upstream open.
    const reached = idle === undefined ? await connect(ready, record, world) : readied(idle);
    if (reached.kind === "refused") return reached.denial;
    // The wait may have outlived the policy: what now leaves is decided by the one in force.
    if (world.inForce() !== ready.force) {
      reached.upstream.destroy();
      continue;
    }
    const running = begin(reached.upstream, ready, world);
    record.leaves([...ready.route.permit.injections.map(({ field }) => field), ...ready.swapped.fields]);
    const outcome = await running.relaying.done;
    world.live.remove(running.live);
    if (outcome.kind !== "stale" || tries === SECOND_TRIES) {
      return settle(outcome, running, record, world);
    }
    tries += 1;
  }
}

interface Ready {
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
type Stop = Denial | Narrowing | Supplying | Holding;

/** The body is signed. */
interface Holding {
  readonly verdict: "hold";
  readonly rule: string | undefined;
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

/** What is to be put on has yet to be had. */
interface Supplying {
  readonly verdict: "wait";
  readonly wait: () => Promise<void>;
}

async function supplied(
  { wait }: Supplying,
  inbound: Inbound,
  record: ExchangeDraft,
  world: World,
): Promise<void> {
  const started = performance.now();
  await reach(inbound, world, (signal) => Promise.race([wait(), untilAborted(signal)]));
  record.waited(performance.now() - started);
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** A signature takes a moment longer than the turn that all else is done in. */
async function arrange(
  arrival: Asking,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<ReturnType<typeof prepare>> {
  const ready = prepare(arrival, cap, record, world);
  return ready.stop === undefined && ready.signing !== undefined ? signed(ready, arrival.held) : ready;
}

/** Identify, decide, transform: everything up to the wire, in one turn and under one policy. */
function prepare(
  arrival: Asking,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Ready | { readonly stop: Stop } {
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
  const swapped = swapPlaceholders({ question, allowance: decision, leg: bare }, force);
  if (swapped.stop !== undefined) return { stop: swapped.stop };
  const secret = { ...permit, injections: [...permit.injections, ...swapped.secrets] };
  const scrubbed = swapped.secrets.length === 0 ? permit : secret;
  const leg = scrubLeg(swapped.leg, scrubbed, {
    secrets: force.secrets,
    generation: generation + swapped.generation,
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

interface PutOn {
  readonly injections: readonly RenderedInjection[];
  readonly generation: string;
  readonly signing: SigningSource | undefined;
  readonly stop?: undefined;
}

/** What the gate adds, or what that has to wait for. */
function putOn(
  permit: Permit,
  { inbound, held }: Asking,
  { secrets }: InForce,
): PutOn | { readonly stop: Stop } {
  const rendered = renderInjections(permit, secrets);
  if (rendered.denial !== undefined) return { stop: rendered.denial };
  if (rendered.wait !== undefined) return { stop: { verdict: "wait", wait: rendered.wait } };
  const signing = signingOf(permit);
  if (signing !== undefined && needsBody(signing, inbound, held)) {
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

function readied(upstream: Upstream): Acquired<Upstream> {
  return { kind: "ready", upstream };
}

async function connect(
  { route, inbound, force, trouble }: Ready,
  record: ExchangeDraft,
  world: World,
): Promise<Acquired<Upstream>> {
  // The dial before the handshake failed a moment ago: this request is what it was for.
  if (trouble !== undefined && trouble.force === force && world.deadlines.now() < trouble.until) {
    if (trouble.outcome instanceof Failure) throw trouble.outcome;
    return trouble.outcome;
  }
  const started = performance.now();
  const acquired = await reach(inbound, world, (signal) => world.forwarder.connect(route, signal));
  record.waited(performance.now() - started);
  return acquired;
}

function legOf(
  { request, inbound, held }: Asking,
  permit: Permit,
  injections: readonly RenderedInjection[],
  settings: readonly Setting[],
): Leg {
  const upgrade = inbound.protocol === "h2" ? request.upgrade === "websocket" : websocketRequest(request);
  const { destination, scheme } = permit;
  const trailers = inbound.protocol === "h2";
  const head = transformRequest(inbound.head, { destination, scheme, injections, upgrade, trailers });
  return {
    head: setFields(head, settings),
    framing: inbound.framing,
    upgrade,
    expectContinue: request.expectContinue && held === undefined,
    response: transformResponse,
    requestTrailers: (lines) => dropFields(transformRequestTrailers(lines, permit.injections), settings),
    responseTrailers: transformResponseTrailers,
  };
}

interface Running {
  readonly relaying: Relaying;
  readonly live: Live<InForce>;
  /** What a policy has against it: the request, or the address that it goes to. */
  readonly objection: (force: InForce) => Denial | undefined;
}

/** While bytes move, a change of policy may end them. */
function begin(upstream: Upstream, { inbound, door, question, leg, swapped }: Ready, world: World): Running {
  if (leg.upgrade && inbound.protocol === "h2" && !upstream.websockets) {
    upstream.destroy();
    throw new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The upstream takes no WebSocket over HTTP/2");
  }
  const relaying = relay(inbound, upstream, leg, world);
  const { peer } = upstream;
  const objection = (force: InForce): Denial | undefined => {
    const broken = swapped.refusal();
    if (broken !== undefined) return broken;
    if (isStranger(door, question.client, force)) return deny("identity-unknown");
    const decision = decideExchange(question, force.policy);
    return decision.verdict === "deny" ? decision : refusePeer(decision.permit, peer, force, world);
  };
  const live: Live<InForce> = {
    slot: undefined,
    holds: (force) => objection(force) === undefined,
    cut: () => relaying.cut(cutOff()),
  };
  world.live.add(live);
  return { relaying, live, objection };
}

function settle(
  outcome: Outcome,
  { objection }: Running,
  record: ExchangeDraft,
  world: World,
): Denial | undefined {
  record.relayed(outcome);
  if (outcome.kind === "relayed") return undefined;
  // What was cut because the policy changed is a refusal, not a failure.
  const denial = objection(world.inForce());
  if (denial !== undefined) return denial;
  throw outcome.failure;
}

function refuse(denial: Denial, inbound: Inbound, record: ExchangeDraft): void {
  record.refused(denial);
  if (inbound.responded !== undefined) inbound.abort();
  else answerInbound(inbound, refusalOf(denial, aboutOf(record)));
}

function fail(error: unknown, inbound: Inbound, record: ExchangeDraft): void {
  const failure = asFailure(error);
  record.failed(failure);
  // What the upstream did to its stream is done to the client's: that is what it would see without us.
  const carried = inbound.protocol === "h2" && failure.reset !== undefined;
  if (inbound.responded !== undefined || carried) inbound.abort(failure.reset);
  else answerInbound(inbound, answerFailure(failure, aboutOf(record)));
}
