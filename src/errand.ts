/** The gate's own errands to endpoints of the operator's config, over the guarded way of everything that leaves. */
import { decideEndpointAddress, permitEndpoint } from "./decide/decide-endpoint.ts";
import { handOverEndpoint } from "./decide/decide-hand-over.ts";
import { call } from "./forward/call.ts";
import { nameOf } from "./identify/identify-destination.ts";
import type { Destination } from "./model/exchange.ts";
import type { Route } from "./model/leg.ts";
import type { HttpEndpoint } from "./model/policy.ts";
import { type InForce, parentAuthOf, type World } from "./world.ts";

export interface Errand {
  readonly endpoint: Omit<HttpEndpoint, "kind">;
  readonly body: string;
  /** Beside those that every errand has. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** By which policy and secrets it goes, and by whose way out. */
export interface ErrandParts {
  readonly force: Pick<InForce, "policy" | "secrets">;
  readonly world: Pick<World, "forwarder">;
}

const MAX_ANSWER_BYTES = 65_536;

/** Names and addresses are vetted, no redirect is followed. Rejects with a Failure where no whole answer came. */
export async function postJson(
  { endpoint, body, fields }: Errand,
  signal: AbortSignal,
  parts: ErrandParts,
): Promise<Answer> {
  return post({ endpoint, body, fields: [["Content-Type", "application/json"], ...fields] }, signal, parts);
}

/** The same for any body, whose type is among the fields. */
export function post(errand: Errand, signal: AbortSignal, parts: ErrandParts): Promise<Answer> {
  return run({ ...errand, method: "POST" }, signal, parts);
}

/** The same without a body. */
export function get(errand: Omit<Errand, "body">, signal: AbortSignal, parts: ErrandParts): Promise<Answer> {
  return run({ ...errand, method: "GET", body: undefined }, signal, parts);
}

async function run(
  {
    method,
    endpoint,
    body,
    fields,
  }: Omit<Errand, "body"> & { readonly method: string; readonly body: string | undefined },
  signal: AbortSignal,
  { force, world }: ErrandParts,
): Promise<Answer> {
  const { destination, scheme, target } = endpoint;
  const order = {
    route: endpointRoute(destination, scheme, force),
    method,
    target,
    host: hostField(destination, scheme),
    fields: [
      ["Accept", "application/json"],
      ["Accept-Encoding", "identity"],
      ["User-Agent", "sallyport"],
      ...fields,
    ] as const,
    body,
    maxBytes: MAX_ANSWER_BYTES,
  };
  const called = await call(world.forwarder, order, signal);
  return { status: called.status, text: called.body.toString("utf8") };
}

function endpointRoute(
  destination: Destination,
  scheme: "http" | "https",
  force: Pick<InForce, "policy" | "secrets">,
): Route {
  const { policy } = force;
  const permit = permitEndpoint(destination, scheme);
  // No sandbox's id has a bracket in it.
  const key = `(hook) ${scheme} ${nameOf(destination)} ${destination.port} ${policy.generation}`;
  return {
    permit,
    guard: (address) => decideEndpointAddress(permit, address, policy),
    handOver: () => handOverEndpoint(permit),
    parentAuth: parentAuthOf(force),
    poolKey: key,
    freshKey: key,
    alpn: ["http/1.1"],
  };
}

function hostField(destination: Destination, scheme: "http" | "https"): string {
  const name = nameOf(destination);
  const host = name.includes(":") ? `[${name}]` : name;
  return destination.port === (scheme === "https" ? 443 : 80) ? host : `${host}:${destination.port}`;
}
