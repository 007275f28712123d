/**
 * The parent proxy: whatever is not on its `no_proxy` list leaves by a CONNECT to it, plain HTTP too, so that one
 * connection leads to one destination and TLS to the origin runs end to end inside.
 */
import type { Socket } from "node:net";
import { type Way, wayTo } from "../base/bypass.ts";
import type { AddressDecision, Denial, Dialable, HandedOver } from "../model/decision.ts";
import type { Destination, IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Acquired, Route } from "../model/leg.ts";
import type { Limits } from "../model/limits.ts";
import type { BypassSource, ParentSource } from "../model/policy.ts";
import { dial, type Opened } from "./dial.ts";
import { askForTunnel } from "./parent-connect.ts";
import type { Resolver } from "./resolve.ts";
import type { UpstreamTls } from "./upstream-tls.ts";

export interface Parent {
  readonly bypass: readonly BypassSource[];
  /** `address port` of where it was last found: no destinations for a sandbox. Another array with each change. */
  endpoints(): readonly string[];
  wayTo(destination: Destination): Way;
  /** Where it is. Rejects with a Failure. */
  locate(signal: AbortSignal): Promise<readonly Dialable[]>;
  /** A tunnel to the first of `targets` that it gets through to. Rejects with a Failure that quotes nothing of its. */
  open(
    located: readonly Dialable[],
    targets: readonly (Dialable | HandedOver)[],
    route: Route,
    signal: AbortSignal,
  ): Promise<Acquired<Opened>>;
}

export interface ParentParts {
  readonly source: ParentSource;
  /** Asked about each address of the proxy itself. */
  readonly guard: (address: IpAddress) => AddressDecision;
  /** Names that have their answer here, whoever resolves the others. */
  readonly hosts: ReadonlyMap<string, readonly IpAddress[]>;
  readonly resolver: Resolver;
  readonly tls: UpstreamTls;
  readonly limits: Limits;
}

/** Addresses of one name that it is asked for, one after the other. */
const TRIES = 4;
const STAGGER_MS = 250;

export function createParent(parts: ParentParts): Parent {
  const { source, guard, hosts, resolver, limits } = parts;
  let endpoints: readonly string[] = [];

  async function locate(signal: AbortSignal): Promise<readonly Dialable[]> {
    const { destination } = source;
    const addresses =
      destination.kind === "address"
        ? [destination.address]
        : await resolver.resolve(destination.host, signal);
    const found = addresses.map(({ text }) => `${text} ${destination.port}`);
    if (found.join() !== endpoints.join()) endpoints = found;
    const dialables = addresses.flatMap((address) => {
      const decision = guard(address);
      return decision.verdict === "allow" ? [decision.dialable] : [];
    });
    if (dialables.length > 0) return dialables;
    throw new Failure("E_CONNECT", "operator", "The parent proxy has no address that may be dialled");
  }

  return {
    bypass: source.bypass,
    endpoints: () => endpoints,
    wayTo: (destination) => wayTo(source, hosts, destination),
    locate,
    async open(located, targets, route, signal) {
      const secret = route.parentAuth?.();
      if (secret?.ok === false) return { kind: "refused", denial: unavailable(route) };
      const authorization = secret && Buffer.from(secret.value, "latin1").toString("base64");
      let failure = new Failure("E_CONNECT", "upstream", "The parent proxy was asked for nothing");
      for (const target of inOrder(targets)) {
        const socket = await reach(parts, located, signal);
        const answer = await askForTunnel(socket, { target, authorization, limits, signal });
        if (answer.kind === "open") {
          return { kind: "ready", upstream: openedBy(socket, answer.early, target, route) };
        }
        ({ failure } = answer);
        if (answer.final) break;
      }
      throw failure;
    },
  };
}

function openedBy(socket: Socket, early: Buffer, target: Dialable | HandedOver, { permit }: Route): Opened {
  if (early.length > 0 && permit.scheme !== "tcp") {
    // Neither TLS nor HTTP begins with the server's word: this is nobody's, or the proxy's own.
    socket.destroy();
    throw new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The parent proxy sent more than its answer");
  }
  return { socket, early, peer: "address" in target ? target.address : undefined };
}

/** A connection to the proxy itself, secured where its URL is `https`. */
async function reach(
  { source, tls, limits }: ParentParts,
  located: readonly Dialable[],
  signal: AbortSignal,
): Promise<Socket> {
  const timeoutMs = limits.connect_timeout;
  const socket = await dial(located, { timeoutMs, signal, stagger: STAGGER_MS });
  if (source.scheme === "http") return socket;
  return tls.secure(socket, source.destination, { timeoutMs, alpn: ["http/1.1"], signal });
}

/** IPv4 first: what the proxy can reach is not known here, and that is what all of them can. */
function inOrder(targets: readonly (Dialable | HandedOver)[]): readonly (Dialable | HandedOver)[] {
  const isSix = (target: Dialable | HandedOver): boolean =>
    "address" in target && target.address.family === 6;
  return [...targets.filter((target) => !isSix(target)), ...targets.filter(isSix)].slice(0, TRIES);
}

function unavailable({ permit }: Route): Denial {
  return { verdict: "deny", reason: "secret-unavailable", rule: permit.rule };
}
