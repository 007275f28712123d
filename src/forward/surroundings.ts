/** Which addresses are this machine's own at the moment: interfaces come and go with every sandbox. */
import { networkInterfaces } from "node:os";
import { parseIpAddress } from "../base/ip.ts";
import type { Surroundings } from "../model/surroundings.ts";

export interface SurroundingsOptions {
  /** `address port`, canonical. Another array with each change, so that a change counts at once. */
  readonly endpoints: () => readonly string[];
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export interface SurroundingsSource {
  current(): Surroundings;
}

/** Listing the interfaces costs a millisecond where there are many, and this is asked for each address. */
const REFRESH_MS = 1_000;

export function createSurroundings({ endpoints, now }: SurroundingsOptions): SurroundingsSource {
  let listed = endpoints();
  let refreshedAt = now();
  let surroundings: Surroundings = { own: ownAddresses(), endpoints: new Set(listed) };
  return {
    current() {
      const list = endpoints();
      if (now() - refreshedAt >= REFRESH_MS) {
        refreshedAt = now();
        surroundings = { ...surroundings, own: ownAddresses() };
      }
      if (list !== listed) {
        listed = list;
        surroundings = { ...surroundings, endpoints: new Set(list) };
      }
      return surroundings;
    },
  };
}

function ownAddresses(): ReadonlySet<string> {
  const own = new Set<string>();
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) {
      // A link-local address may carry its interface's name.
      const parsed = parseIpAddress(address.replace(/%.*$/, ""));
      if (parsed !== undefined) own.add(parsed.text);
    }
  }
  return own;
}
