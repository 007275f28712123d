/** The gate's way out by one config: its resolver, its parent proxy, its trust and the forwarder that uses them. */
import { decideParentAddress } from "./decide/decide-endpoint.ts";
import { Forwarder } from "./forward/forwarder.ts";
import { createParent } from "./forward/parent.ts";
import { createResolver } from "./forward/resolve.ts";
import { createUpstreamTls } from "./forward/upstream-tls.ts";
import type { Config } from "./model/config.ts";
import type { Deadlines } from "./model/deadline.ts";
import type { AddressDecision } from "./model/decision.ts";
import type { IpAddress } from "./model/exchange.ts";
import type { Limits } from "./model/limits.ts";
import type { ParentSource } from "./model/policy.ts";
import type { Turn } from "./model/turn.ts";

export interface Outward {
  readonly forwarder: Forwarder;
  /** `address port` of what the gate itself connects to, or listens on for its operator. */
  readonly endpoints: () => readonly string[];
}

export interface OutwardParts {
  readonly limits: Limits;
  readonly deadlines: Deadlines;
  readonly turn: Turn;
  /** Milliseconds, by a clock that does not go back. */
  readonly now: () => number;
  /** Milliseconds that resolving, dialling and securing one connection took. */
  readonly onConnected: (ms: number) => void;
}

/** Throws `E_CONFIG` where a file that the config names cannot be used. */
export function openOutward({ policy, upstream, listen }: Config, around: OutwardParts): Outward {
  const { limits, deadlines, turn, now, onConnected } = around;
  const hosts = upstream.dnsHosts;
  const resolver = createResolver({ servers: upstream.dnsServers, hosts, limits, now });
  const admin = listen.admin === undefined ? [] : [`${listen.admin.host} ${listen.admin.port}`];
  const tls = createUpstreamTls({ caFile: upstream.caFile });
  const source = policy.parent;
  const guard = (address: IpAddress): AddressDecision =>
    decideParentAddress((source as ParentSource).destination, address);
  const parent =
    source === undefined ? undefined : createParent({ source, guard, hosts, resolver, tls, limits });
  const own = [...resolver.servers(), ...admin];
  const forwarder = new Forwarder({ parent, limits, deadlines, turn, resolver, tls, onConnected });
  return { forwarder, endpoints: parent === undefined ? () => own : joined(own, parent.endpoints) };
}

/** One list out of two, the same object for as long as the second one is. */
function joined(fixed: readonly string[], moving: () => readonly string[]): () => readonly string[] {
  let last = moving();
  let all = [...fixed, ...last];
  return () => {
    if (moving() !== last) {
      last = moving();
      all = [...fixed, ...last];
    }
    return all;
  };
}
