/** What the sentences share: the world they act on, and the steps that both of them take. */
import type { Asking } from "./accept/arrival.ts";
import type { ConnectionCaps } from "./accept/connection-caps.ts";
import type { LiveSet } from "./base/live-set.ts";
import type { Roster, Seat } from "./base/roster.ts";
import { classifyAddress } from "./decide/address-class.ts";
import { decideAddress, type Surroundings } from "./decide/decide-address.ts";
import { decideHandOver } from "./decide/decide-hand-over.ts";
import type { Policy } from "./decide/policy.ts";
import type { Forwarder } from "./forward/forwarder.ts";
import type { ApprovalBook } from "./hooks/approvals.ts";
import type { HookDesk } from "./hooks/hook-desk.ts";
import { type ClientClaims, identifyClient, isStill } from "./identify/identify-client.ts";
import { identifyDestination } from "./identify/identify-destination.ts";
import type { Door, Original } from "./model/arrival.ts";
import type { PlaceholderSource } from "./model/credential.ts";
import type { Deadlines } from "./model/deadline.ts";
import { type Denial, deny, type Permit, type Reason } from "./model/decision.ts";
import type { Client, Destination, IpAddress, Question, Visibility } from "./model/exchange.ts";
import { clientLeft, Failure } from "./model/failure.ts";
import type { Inbound } from "./model/inbound.ts";
import type { Route } from "./model/leg.ts";
import type { Limits } from "./model/limits.ts";
import type { ApprovalOptions, HookOptions, HookSource, SandboxSource } from "./model/policy.ts";
import type { Recorder } from "./model/record.ts";
import type { Turn } from "./model/turn.ts";
import type { LeafCache } from "./pki/leaf-cache.ts";
import { poolKeysOf } from "./pool-keys.ts";
import { readIdentity } from "./secrets/client-identity.ts";
import type { Secrets } from "./secrets/secrets.ts";
import { proofHolds, proofOf } from "./secrets/token-proof.ts";
import type { RenderedInjection } from "./transform/transform-request.ts";

/** What an exchange needs from the world: `app.ts` supplies the real one, tests supply fakes. */
export interface World {
  /** Read once for each decision, so that a reload never splits one. */
  readonly inForce: () => InForce;
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  readonly recorder: Recorder;
  readonly forwarder: Forwarder;
  readonly leaves: LeafCache;
  readonly surroundings: () => Surroundings;
  readonly caps: ConnectionCaps;
  /** What is under way and is decided again on a reload. */
  readonly live: LiveSet<InForce>;
  readonly hooks: HookDesk;
  readonly approvals: ApprovalBook;
  /** Told, for the operator's log, what went wrong with the webhook for approvals. */
  readonly webhookFailed: (problem: string) => void;
  readonly connections: Roster<Seat<ClientConnection>>;
  readonly draining: () => boolean;
}

/** A client's connection, whatever it speaks. */
export interface ClientConnection {
  /** Ends it once what is under way is over. */
  drain(): void;
  /** Ends it now. */
  cut(): void;
  whenClosed(callback: () => void): void;
}

/** A policy and what belongs to it; replaced as a whole. */
export interface InForce {
  readonly policy: Policy;
  /** As records carry it. */
  readonly digest: string;
  readonly sandboxes: readonly SandboxSource[];
  readonly secrets: Secrets;
  /** The operator's, by the index that the policy knows them by. */
  readonly hooks: readonly HookSource[];
  readonly hookOptions: HookOptions;
  readonly placeholders: readonly PlaceholderSource[];
  readonly approvals: ApprovalOptions;
}

export type Asked =
  | {
      readonly client: Client;
      readonly destination: Destination;
      readonly question: Question;
      readonly denial?: undefined;
    }
  | { readonly client: Client | undefined; readonly destination: Destination; readonly denial: Denial };

/** Who asks for where; a denial where nobody in particular does, or the claims differ. Throws `E_BAD_REQUEST`. */
export function ask(
  arrival: Pick<Asking, "claims" | "door" | "inbound">,
  visibility: Visibility,
  force: InForce,
): Asked {
  const { claims, door, inbound } = arrival;
  const { agree, destination } = identifyDestination(claims, door);
  const known = door.tunnel?.client ?? door.original?.client;
  const { proxyAuthorization } = claims;
  const client = known ?? identify({ address: door.address, proxyAuthorization }, force);
  if (client === undefined || (known !== undefined && isStranger(door, known, force))) {
    return { client, destination, denial: deny("identity-unknown") };
  }
  const refused = refuseOriginal(door.original);
  if (refused !== undefined) return { client, destination, denial: deny(refused) };
  if (!agree) return { client, destination, denial: deny("names-disagree") };
  // Clear text on the port of TLS is not what a rule let through.
  const behind = door.tunnel !== undefined || door.original !== undefined;
  if (behind && door.scheme === "http" && destination.port === 443) {
    return { client, destination, denial: deny("needs-inspection") };
  }
  const scheme = visibility === "request" ? door.scheme : "https";
  const request = visibility === "request" ? inbound.head : undefined;
  return { client, destination, question: { client, destination, scheme, visibility, request } };
}

/** Who asks, by what it shows. */
export function identify(claims: ClientClaims, { sandboxes, secrets }: InForce): Client | undefined {
  return identifyClient(claims, sandboxes, (key, presented) => proofOf(secrets, key, presented));
}

/**
 * Whoever was let in as a sandbox, or as nobody in particular, and would not be by the sandboxes that are now in
 * force: its source, its interface or its token is another's by now, or nobody's.
 */
export function isStranger({ original }: Door, client: Client, { sandboxes, secrets }: InForce): boolean {
  const { sandbox } = client;
  if (original === undefined) {
    return !isStill(client, sandboxes, (key, proof) => proofHolds(secrets, key, proof));
  }
  if (original.identify === undefined) {
    // Nobody else is behind a door of its own; but the sandbox may be gone.
    return sandbox !== undefined && !sandboxes.some(({ id }) => id === sandbox);
  }
  const now = original.identify(sandboxes);
  return now === undefined || now.sandbox !== sandbox;
}

/** What a name inside cannot mend: the sandbox's own loopback, where one of our listeners stands in it. */
export function refuseOriginal(original: Original | undefined): Reason | undefined {
  if (original === undefined || classifyAddress(original.address) !== "loopback") return undefined;
  return "loopback";
}

/** On a transparent connection a bare address that no entry lists is a name that is missing. */
export function unnamed(denial: Denial, original: Original | undefined, { kind }: Destination): Denial {
  if (original === undefined || kind === "name") return denial;
  const nameless = denial.reason === "no-rule-matched" || original.name !== undefined;
  return nameless ? deny("no-name") : denial;
}

export type Rendered =
  | {
      readonly injections: readonly RenderedInjection[];
      readonly generation: string;
      readonly denial?: undefined;
      readonly wait?: undefined;
    }
  | { readonly denial: Denial; readonly wait?: undefined }
  /** What takes a while to be had: resolves, and never rejects, once that is known. */
  | { readonly wait: () => Promise<void>; readonly denial?: undefined };

/** The permit's fields with their secrets in them; `generation` changes whenever one of those does. */
export function renderInjections(permit: Permit, secrets: Secrets): Rendered {
  const injections: RenderedInjection[] = [];
  let generation = "";
  for (const { field, key, secret, signing } of permit.injections) {
    const rendered = secrets.render(secret);
    if (!rendered.ok && rendered.whenKnown !== undefined) return { wait: rendered.whenKnown };
    if (!rendered.ok) return { denial: { ...deny("secret-unavailable"), rule: permit.rule } };
    if (signing === undefined) injections.push({ field, key, value: rendered.value });
    // By name: two rules of one host may have two secrets, each of them the first of its kind.
    generation += ` ${secret}:${rendered.generation}`;
  }
  const shown = permit.certificate === undefined ? undefined : readIdentity(permit.certificate, secrets);
  if (shown?.ok === false) {
    if (shown.wait !== undefined) return { wait: shown.wait };
    return { denial: { ...deny("secret-unavailable"), rule: permit.rule } };
  }
  return { injections, generation };
}

/** Connections are shared by exchanges of one sandbox, one destination, one policy and one set of secrets. */
export function routeOf(permit: Permit, secretGeneration: string, force: InForce, world: World): Route {
  const shown =
    permit.certificate === undefined ? undefined : readIdentity(permit.certificate, force.secrets);
  const certificate = shown?.ok === true ? `${permit.certificate}${shown.generation}` : "";
  const { freshKey, poolKey } = poolKeysOf(permit, secretGeneration, force.policy.generation, certificate);
  return {
    permit,
    ...(shown?.ok === true ? { identity: shown.identity } : {}),
    guard: (address) => decideAddress(permit, address, force.policy, world.surroundings()),
    handOver: () => decideHandOver(permit),
    parentAuth: parentAuthOf(force),
    poolKey,
    freshKey,
    alpn: HTTP1,
  };
}

/** Read at each connection: the secret may change under a policy that stays. */
export function parentAuthOf({ policy, secrets }: Pick<InForce, "policy" | "secrets">): Route["parentAuth"] {
  const key = policy.parent?.auth;
  return key === undefined ? undefined : () => secrets.render(key);
}

/** What the policy has against an address that was dialled under another one; `peer` is undefined once it is gone. */
export function refusePeer(
  permit: Permit,
  peer: IpAddress | undefined,
  { policy }: InForce,
  world: World,
): Denial | undefined {
  if (peer === undefined) return undefined;
  const decision = decideAddress(permit, peer, policy, world.surroundings());
  return decision.verdict === "deny" ? decision : undefined;
}

/** Runs `step` until it is done, takes too long, or nobody is left who waits for it. */
export async function reach<T>(
  inbound: Inbound,
  world: World,
  step: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { connect_timeout } = world.limits;
  const timer = setTimeout(() => {
    controller.abort(new Failure("E_TIMEOUT", "upstream", "The upstream could not be reached in time"));
  }, connect_timeout);
  inbound.whenLost(() => {
    controller.abort(clientLeft());
  });
  try {
    return await step(controller.signal);
  } catch (error) {
    // Whatever the step calls it, the reason for stopping is ours.
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

const HTTP1 = ["http/1.1"] as const;
