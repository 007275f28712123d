/** Who asks: a sandbox named by its token, or by where it comes from. Pure. */
import { parseIpAddress, rangeContains } from "../base/ip.ts";
import type { Client } from "../model/exchange.ts";
import type { SandboxSource } from "../model/policy.ts";

export interface ClientClaims {
  /** The peer's address, canonical text. */
  readonly address: string;
  /** Value of `Proxy-Authorization`, if one was sent. */
  readonly proxyAuthorization: string | undefined;
}

/** Compares in constant time. The client's proof; undefined where it is not the token, or that is not to be had. */
export type ProveToken = (tokenKey: string, presented: string) => string | undefined;

/** Whether what proved a token once would still prove it. */
export type ProofHolds = (tokenKey: string, proof: string) => boolean;

/**
 * The client, or undefined where nobody in particular is asking although `sandboxes` names who may.
 *
 * Credentials, if sent, decide: they must be right, and the source must be the sandbox's where it has one, and
 * nobody else's where it has none.
 * Without them the source decides, if it is one sandbox's alone.
 */
export function identifyClient(
  claims: ClientClaims,
  sandboxes: readonly SandboxSource[],
  prove: ProveToken,
): Client | undefined {
  const { address, proxyAuthorization } = claims;
  if (sandboxes.length === 0) return { sandbox: undefined, address };
  if (proxyAuthorization !== undefined) return clientOfToken(proxyAuthorization, address, sandboxes, prove);
  const sandbox = soleSandboxAt(address, sandboxes);
  return sandbox === undefined ? undefined : { sandbox: sandbox.id, address };
}

/** Whether `client`, with what it showed then, would be identified as the same one by these sandboxes. */
export function isStill(
  { sandbox: id, address, proof }: Client,
  sandboxes: readonly SandboxSource[],
  holds: ProofHolds,
): boolean {
  if (sandboxes.length === 0 || id === undefined) return sandboxes.length === 0 && id === undefined;
  if (proof === undefined) return soleSandboxAt(address, sandboxes)?.id === id;
  const sandbox = sandboxes.find((one) => one.id === id);
  if (sandbox?.token === undefined || !holds(sandbox.token, proof)) return false;
  return mayComeFrom(sandbox, address, sandboxes);
}

function clientOfToken(
  proxyAuthorization: string,
  address: string,
  sandboxes: readonly SandboxSource[],
  prove: ProveToken,
): Client | undefined {
  const credentials = parseBasic(proxyAuthorization);
  const sandbox = sandboxes.find(({ id }) => id === credentials?.id);
  if (credentials === undefined || sandbox?.token === undefined) return undefined;
  const proof = prove(sandbox.token, credentials.token);
  if (proof === undefined || !mayComeFrom(sandbox, address, sandboxes)) return undefined;
  return { sandbox: sandbox.id, address, proof };
}

/** Whoever has the sandbox's token. */
function mayComeFrom(sandbox: SandboxSource, address: string, sandboxes: readonly SandboxSource[]): boolean {
  if (sandbox.source.length > 0) return isAt(sandbox, address);
  // A token that turns up at another sandbox's address was taken from its owner (L14).
  return !sandboxes.some((other) => isAt(other, address));
}

function soleSandboxAt(address: string, sandboxes: readonly SandboxSource[]): SandboxSource | undefined {
  const found = sandboxes.filter((sandbox) => isAt(sandbox, address));
  return found.length === 1 ? found[0] : undefined;
}

function isAt(sandbox: SandboxSource, address: string): boolean {
  const ip = parseIpAddress(address);
  return ip !== undefined && sandbox.source.some((range) => rangeContains(range, ip));
}

/** RFC 7617; the id cannot hold a colon, the token may. */
function parseBasic(value: string): { readonly id: string; readonly token: string } | undefined {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { id: text.slice(0, colon), token: text.slice(colon + 1) };
}
