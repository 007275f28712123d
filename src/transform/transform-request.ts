/** Rewrites a request's head on its way out. Pure: a head in, a new head out. */

import { isConnectionSpecific, nominatedKeys } from "../base/hop-by-hop.ts";
import type { Destination, Field, FieldLines, RequestHead, Scheme } from "../model/exchange.ts";

/** A field that the gate adds, its secret already in it. It lives no longer than the head that takes it. */
export interface RenderedInjection {
  readonly field: string;
  /** Lower case. */
  readonly key: string;
  readonly value: string;
}

export interface RequestRewrite {
  readonly destination: Destination;
  readonly scheme: Scheme;
  readonly injections: readonly RenderedInjection[];
  /** The request asks for a WebSocket: its `Upgrade` goes on, and the codec nominates it. */
  readonly upgrade: boolean;
  /** The client's hop is HTTP/2, where `te: trailers` goes on (RFC 9113 section 8.2.2). */
  readonly trailers?: boolean;
}

/**
 * In this order: drop the fields of the client's hop and those it nominates, drop the client's own value
 * of each injected field and of its underscore alias, name the decided host, inject.
 * Method and target leave as they were decided; only fields change.
 */
export function transformRequest(head: RequestHead, rewrite: RequestRewrite): RequestHead {
  const nominated = nominatedKeys(head.fields);
  const host = { name: "Host", key: "host", value: hostField(rewrite) };
  const fields: Field[] = [];
  let named = false;
  for (const field of head.fields) {
    if (field.key === "host") {
      if (!named) fields.push({ ...host, name: field.name });
      named = true;
    } else if (!staysOnThisHop(field.key, nominated, rewrite)) fields.push(field);
  }
  if (!named) fields.unshift(host);
  if (rewrite.upgrade) fields.push({ name: "Upgrade", key: "upgrade", value: "websocket" });
  for (const { field, key, value } of rewrite.injections) fields.push({ name: field, key, value });
  return rewritten(head, fields, rewrite);
}

/** Drops what must not arrive after the body: the injected fields, under any spelling. */
export function transformRequestTrailers(
  trailers: FieldLines,
  injections: readonly { readonly key: string }[],
): FieldLines {
  return trailers.length === 0 ? trailers : trailers.filter(({ key }) => !isInjected(key, injections));
}

/** What is injected is as little to be remembered by a compression as what the client marked. */
function rewritten(
  { method, target, sensitive }: RequestHead,
  fields: FieldLines,
  { injections }: RequestRewrite,
): RequestHead {
  if (sensitive === undefined) return { method, target, minor: 1, fields };
  return { method, target, minor: 1, fields, sensitive: [...sensitive, ...injections.map(({ key }) => key)] };
}

function staysOnThisHop(
  key: string,
  nominated: ReadonlySet<string> | undefined,
  { injections, trailers }: RequestRewrite,
): boolean {
  if (key === "te" && trailers === true) return false;
  return (
    isConnectionSpecific(key) ||
    key === "trailer" ||
    (nominated?.has(key) ?? false) ||
    isInjected(key, injections)
  );
}

/** CGI-like origins read `X_Api_Key` as `X-Api-Key`, so the alias counts as the field. */
function isInjected(key: string, injections: readonly { readonly key: string }[]): boolean {
  for (const injection of injections) {
    if (injection.key.length !== key.length) continue;
    if (injection.key === key || hyphenated(injection.key) === hyphenated(key)) return true;
  }
  return false;
}

function hyphenated(key: string): string {
  return key.replaceAll("_", "-");
}

/** The decided name and no other spelling of it: what was judged is what the origin reads. */
function hostField({ destination, scheme }: RequestRewrite): string {
  const host =
    destination.kind === "name"
      ? destination.host
      : destination.address.family === 6
        ? `[${destination.address.text}]`
        : destination.address.text;
  const usual = scheme === "https" ? 443 : 80;
  return destination.port === usual ? host : `${host}:${destination.port}`;
}
