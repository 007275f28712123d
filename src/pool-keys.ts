/** By what upstream connections are shared: one sandbox, one destination, one policy and one set of secrets. Pure but for its memory. */
import { nameOf } from "./identify/identify-destination.ts";
import type { Permit } from "./model/decision.ts";
import type { Destination, Scheme } from "./model/exchange.ts";

export interface PoolKeys {
  readonly sandbox: string | undefined;
  readonly scheme: Scheme;
  readonly mayReachPrivate: boolean;
  readonly generation: number;
  readonly secretGeneration: string;
  readonly certificate: string;
  readonly freshKey: string;
  readonly poolKey: string;
}

/** The last keys of each destination: a connection asks for the same ones again and again, and one string hashes once. */
const LAST_KEYS = new WeakMap<Destination, PoolKeys>();

/** The same object as the last time where nothing is different. */
export function poolKeysOf(
  permit: Permit,
  secretGeneration: string,
  generation: number,
  certificate: string,
): PoolKeys {
  const { client, destination, scheme, mayReachPrivate } = permit;
  const { sandbox } = client;
  const last = LAST_KEYS.get(destination);
  if (
    last?.generation === generation &&
    last.secretGeneration === secretGeneration &&
    last.certificate === certificate &&
    last.sandbox === sandbox &&
    last.scheme === scheme &&
    last.mayReachPrivate === mayReachPrivate
  ) {
    return last;
  }
  const where = `${nameOf(destination)} ${destination.port}`;
  const freshKey = `${sandbox ?? ""} ${scheme} ${where} ${generation} ${mayReachPrivate}${certificate === "" ? "" : ` ${certificate}`}`;
  const poolKey = `${freshKey}${secretGeneration}`;
  const keys = {
    sandbox,
    scheme,
    mayReachPrivate,
    generation,
    secretGeneration,
    certificate,
    freshKey,
    poolKey,
  };
  LAST_KEYS.set(destination, keys);
  return keys;
}
