/**
 * One exchange, end to end. Read this file first: its calls, top to bottom, are the stage folders.
 *
 *   accept -> identify -> decide -> transform -> forward -> record
 *
 * Only the files beside this one import from more than one stage.
 */
import { answerInbound } from "./accept/answer.ts";
import type { Cap } from "./accept/connection-caps.ts";
import type { Arrival } from "./accept/http1-connection.ts";
import { type About, answerFailure, refusalOf } from "./accept/refusal.ts";
import { decideExchange } from "./decide/decide-exchange.ts";
import type { Acquired } from "./forward/forwarder.ts";
import type { Http1Upstream } from "./forward/http1-upstream.ts";
import { relay } from "./forward/relay.ts";
import { nameOf } from "./identify/identify-destination.ts";
import type { Denial, Permit } from "./model/decision.ts";
import type { Question } from "./model/exchange.ts";
import { Failure } from "./model/failure.ts";
import type { Inbound } from "./model/inbound.ts";
import type { Leg, Outcome, Route } from "./model/leg.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { transformRequest, transformRequestTrailers } from "./transform/transform-request.ts";
import { transformResponse, transformResponseTrailers } from "./transform/transform-response.ts";
import { websocketRequest } from "./wire/upgrade.ts";
import { ask, type InForce, reach, renderInjections, routeOf, type World } from "./world.ts";

const TOO_MANY: Denial = { verdict: "deny", reason: "limit-exceeded", rule: undefined };

/** Every arrival ends in exactly one record and, where anybody is there to read it, one answer. */
export async function runExchange(arrival: Arrival, cap: Cap, world: World): Promise<void> {
  const { inbound, door } = arrival;
  const record = new ExchangeDraft(world.recorder, door);
  record.method = inbound.head.method;
  record.target = inbound.head.target;
  try {
    const denial = await proceed(arrival, cap, record, world);
    if (denial !== undefined) refuse(denial, inbound, record);
  } catch (error) {
    fail(error, inbound, record);
  } finally {
    record.status = inbound.responded;
    record.end();
  }
}

/** Resolves with a denial where policy says no; throws a Failure where something broke. */
async function proceed(
  arrival: Arrival,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Denial | undefined> {
  for (let fresh = false; ; ) {
    const ready = prepare(arrival, cap, record, world);
    if (ready.denial !== undefined) return ready.denial;

    const reached = await upstreamFor(ready, fresh, record, world);
    if (reached.kind === "refused") return reached.denial;
    // The wait may have outlived the policy: what now leaves is decided by the one in force.
    if (world.inForce() !== ready.force) {
      reached.upstream.destroy();
      continue;
    }
    record.leaves();
    const outcome = await relayed(reached.upstream, ready, world);
    if (outcome.kind !== "stale") return settle(outcome, ready.question, record, world);
    fresh = true;
  }
}

interface Ready {
  readonly inbound: Inbound;
  readonly force: InForce;
  readonly question: Question;
  readonly leg: Leg;
  readonly route: Route;
  readonly denial?: undefined;
}

/** Identify, decide, transform: everything up to the wire, in one turn and under one policy. */
function prepare(
  arrival: Arrival,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Ready | { readonly denial: Denial } {
  const force = world.inForce();
  record.policy = force.digest;
  const asked = ask(arrival, "request", force);
  record.asked(asked);
  if (asked.denial !== undefined) return asked;
  const { question } = asked;
  if (!cap.claim(question.client.sandbox)) return { denial: TOO_MANY };

  const decision = decideExchange(question, force.policy);
  record.decided(decision);
  if (decision.verdict === "deny") return { denial: decision };

  const { permit } = decision;
  const rendered = renderInjections(permit, force.secrets);
  if (rendered.denial !== undefined) return rendered;
  const leg = legOf(arrival, permit, rendered.injections);
  record.injected = permit.injections.map(({ field }) => field);
  if (leg.upgrade) record.protocol = "ws";
  const route = routeOf(permit, rendered.generation, force, world);
  return { inbound: arrival.inbound, force, question, leg, route };
}

async function upstreamFor(
  { route, inbound }: Ready,
  fresh: boolean,
  record: ExchangeDraft,
  world: World,
): Promise<Acquired<Http1Upstream>> {
  const idle = fresh ? undefined : world.forwarder.reuse(route);
  if (idle !== undefined) return { kind: "ready", upstream: idle };
  const started = performance.now();
  const acquired = await reach(inbound, world, (signal) => world.forwarder.connect(route, signal));
  record.waited(performance.now() - started);
  return acquired;
}

function legOf(
  { request, inbound }: Arrival,
  permit: Permit,
  injections: readonly { readonly field: string; readonly key: string; readonly value: string }[],
): Leg {
  const upgrade = websocketRequest(request);
  const { destination, scheme } = permit;
  return {
    head: transformRequest(inbound.head, { destination, scheme, injections, upgrade }),
    framing: inbound.framing,
    upgrade,
    expectContinue: request.expectContinue,
    response: transformResponse,
    requestTrailers: (trailers) => transformRequestTrailers(trailers, permit.injections),
    responseTrailers: transformResponseTrailers,
  };
}

/** While bytes move, a change of policy may end them. */
async function relayed(
  upstream: Http1Upstream,
  { inbound, question, leg }: Ready,
  world: World,
): Promise<Outcome> {
  const relaying = relay(inbound, upstream, leg, world);
  const live = {
    holds: (force: InForce) => decideExchange(question, force.policy).verdict === "allow",
    cut: () => relaying.cut(new Failure("E_INTERNAL", "gate", "Cut by a change of policy or a stop")),
  };
  world.live.add(live);
  try {
    return await relaying.done;
  } finally {
    world.live.remove(live);
  }
}

function settle(
  outcome: Exclude<Outcome, { kind: "stale" }>,
  question: Question,
  record: ExchangeDraft,
  world: World,
): Denial | undefined {
  record.relayed(outcome);
  if (outcome.kind === "relayed") return undefined;
  // What was cut because the policy changed is a refusal, not a failure.
  const now = decideExchange(question, world.inForce().policy);
  if (now.verdict === "deny") return now;
  throw outcome.failure;
}

function refuse(denial: Denial, inbound: Inbound, record: ExchangeDraft): void {
  record.refused(denial);
  if (inbound.responded !== undefined) inbound.abort();
  else answerInbound(inbound, refusalOf(denial, aboutOf(record)));
}

function fail(error: unknown, inbound: Inbound, record: ExchangeDraft): void {
  const failure =
    error instanceof Failure
      ? error
      : new Failure("E_INTERNAL", "gate", "Something broke in the gate", { cause: error });
  record.failed(failure);
  if (inbound.responded !== undefined) inbound.abort();
  else answerInbound(inbound, answerFailure(failure, aboutOf(record)));
}

function aboutOf(record: ExchangeDraft): About {
  const { destination } = record;
  return {
    host: destination === undefined ? undefined : nameOf(destination),
    port: destination?.port,
    connect: record.method === "CONNECT",
  };
}
