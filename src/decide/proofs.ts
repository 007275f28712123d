/** The one place where an unchecked value becomes a checked one. Pure. */
import type { Dialable, HandedOver, Permit } from "../model/decision.ts";
import type { Hostname, IpAddress } from "../model/exchange.ts";

/** For this room alone, after a rule (or `evaluate_only`) allowed the exchange. Not frozen: it is made per request. */
export function mintPermit(
  fields: {
    readonly [Key in keyof Permit as Exclude<Key, symbol>]: Permit[Key];
  },
): Permit {
  return fields as Permit;
}

/** For `decide-address.ts`, once the address was vetted. */
export function mintDialable(address: IpAddress, port: number): Dialable {
  return Object.freeze({ address, port }) as Dialable;
}

/** For `decide-hand-over.ts`, once the name was judged. */
export function mintHandedOver(host: Hostname, port: number): HandedOver {
  return Object.freeze({ host, port }) as HandedOver;
}
