/**
 * One exchange, end to end. Read this file first: its calls, top to bottom, are the stage folders.
 *
 *   accept -> identify -> decide -> transform -> forward -> record
 *
 * Only the files beside this one import from more than one stage.
 */
import { answerInbound } from "./accept/answer.ts";
import type { Cap } from "./accept/connection-caps.ts";
import { aboutOf, answerFailure, refusalOf } from "./accept/refusal.ts";
import type { Live } from "./base/live-set.ts";
import { decideExchange } from "./decide/decide-exchange.ts";
import { type Relaying, relay } from "./forward/relay.ts";
import type { Door } from "./model/arrival.ts";
import { type Denial, deny } from "./model/decision.ts";
import { asFailure, cutOff, Failure } from "./model/failure.ts";
import type { Inbound, Upstream } from "./model/inbound.ts";
import type { Acquired, Outcome, Room } from "./model/leg.ts";
import { narrow } from "./narrow.ts";
import { type PendingExchange, prepare, type Ready, type Stop, type Supplying } from "./prepare.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { hold } from "./signing.ts";
import { isGrpc } from "./wire/grpc.ts";
import { type InForce, isStranger, reach, refusePeer, type World } from "./world.ts";

/** How often an exchange whose upstream went away untouched is sent again. */
const SECOND_TRIES = 2;

/** Every arrival ends in exactly one record and, where anybody is there to read it, one answer. */
export async function runExchange(arrival: PendingExchange, cap: Cap, world: World): Promise<void> {
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
  arrival: PendingExchange,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Denial | undefined> {
  let asking = arrival;
  let room: Room | undefined;
  try {
    for (;;) {
      const end = await proceed(asking, cap, record, world);
      if (end?.verdict === "wait") await supplied(end, asking.inbound, record, world);
      else if (end?.verdict === "ask") asking = { ...asking, narrowed: await narrow(end, record, world) };
      else if (end?.verdict === "hold") {
        room ??= cap.room("signed_bytes_per_sandbox");
        const held = await hold(asking.inbound, asking.request.expectContinue, world.limits, room.take);
        if (held.kind === "over") return deny("limit-exceeded", end.rule);
        asking = { ...asking, inbound: held.inbound, held: held.body };
      } else return end;
    }
  } finally {
    room?.release();
  }
}

/** Resolves with a denial where policy says no, or with whom to ask first; throws a Failure where something broke. */
async function proceed(
  arrival: PendingExchange,
  cap: Cap,
  record: ExchangeDraft,
  world: World,
): Promise<Stop | undefined> {
  for (let tries = 0; ; ) {
    const ready = await prepare(arrival, cap, record, world);
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

interface Running {
  readonly relaying: Relaying;
  readonly live: Live<InForce>;
  /** What a policy has against it: the request, or the address that it goes to. */
  readonly objection: (force: InForce) => Denial | undefined;
}

/** While bytes move, a change of policy may end them. */
function begin(upstream: Upstream, { inbound, door, question, leg, swapped }: Ready, world: World): Running {
  if (leg.extended === true && !upstream.websockets) {
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
