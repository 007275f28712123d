/** For where: the one destination that every claim of a request agrees on. Pure. */
import type { Authority, Claims, Door, Original } from "../model/arrival.ts";
import type { Destination } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";

/** Either the destination, or the two claims that differ. */
export type Identified =
  | { readonly agree: true; readonly destination: Destination }
  | { readonly agree: false; readonly destination: Destination };

/**
 * The destination of a request: the tunnel's where it came in by one, else its absolute-form target's, else on a
 * transparent connection its Host's, or the address that was dialled.
 *
 * On `agree: false` the destination is the one that the gate would have used. Throws `E_BAD_REQUEST` where a
 * request names none. Absolute-form beats Host in RFC 9112 section 3.2.2; here they must be equal.
 */
export function identifyDestination(claims: Claims, door: Door): Identified {
  const claimed = claims.authority === undefined ? undefined : destinationOf(claims.authority);
  const destination = door.tunnel?.destination ?? claimed ?? dialled(claims.host, door.original);
  if (destination === undefined) {
    throw new Failure(
      "E_BAD_REQUEST",
      "client",
      "This is a proxy: the request target must be an absolute http URL",
    );
  }
  const agree =
    isNamed(claims.authority, destination) &&
    isNamed(claims.host, destination) &&
    (door.serverName === undefined || door.serverName === nameOf(destination)) &&
    (door.tunnel !== undefined || isDialled(destination, door.original));
  return { agree, destination };
}

export function destinationOf({ host, port }: Authority): Destination {
  return host.kind === "name"
    ? { kind: "name", host: host.name, port }
    : { kind: "address", address: host.address, port };
}

/** The name as clients and records see it. */
export function nameOf(destination: Destination): string {
  return destination.kind === "name" ? destination.host : destination.address.text;
}

function dialled(host: Authority | undefined, original: Original | undefined): Destination | undefined {
  if (original === undefined) return undefined;
  return host === undefined
    ? { kind: "address", address: original.address, port: original.port }
    : destinationOf(host);
}

/** A literal must be the very address that was dialled; a name must be the one that the address was given out for. */
function isDialled(destination: Destination, original: Original | undefined): boolean {
  if (original === undefined) return true;
  if (destination.port !== original.port) return false;
  if (destination.kind === "address") return destination.address.text === original.address.text;
  return original.name === undefined || original.name === destination.host;
}

function isNamed(claim: Authority | undefined, destination: Destination): boolean {
  if (claim === undefined) return true;
  const claimed = claim.host.kind === "name" ? claim.host.name : claim.host.address.text;
  return (
    claim.host.kind === destination.kind && claimed === nameOf(destination) && claim.port === destination.port
  );
}
