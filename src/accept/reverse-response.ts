/** What a base-URL client gets of an upstream's fields: what they name is put under the client's own path. Pure. */
import { isConnectionSpecific } from "../base/hop-by-hop.ts";
import type { Authority } from "../model/arrival.ts";
import type { Destination, Field, FieldLines } from "../model/exchange.ts";
import { parseAuthority } from "../wire/authority.ts";

export interface Scope {
  /** What the client wrote before the upstream's path: `/api.example.com`. */
  readonly base: string;
  readonly destination: Destination;
  /** Of the request, in origin-form. */
  readonly target: string;
}

/** A document from here is of no site at all, so that its scripts cannot ask this listener for anything. */
const SANDBOX: Field = {
  name: "Content-Security-Policy",
  key: "content-security-policy",
  value: "sandbox",
};
const HTTPS_PORT = 443;

export function scopeResponse(fields: FieldLines, scope: Scope): FieldLines {
  const scoped: Field[] = [];
  for (const field of fields) {
    if (staysBehind(field.key)) continue;
    if (field.key === "set-cookie") scoped.push({ ...field, value: scopeCookie(field.value, scope) });
    else if (field.key === "location") scoped.push({ ...field, value: scopeLocation(field.value, scope) });
    else scoped.push(field);
  }
  return [...scoped, SANDBOX];
}

/** No page of another site may read an answer, whatever the upstream says, and none may wipe what other ports of this host stored. */
function staysBehind(key: string): boolean {
  return isConnectionSpecific(key) || key.startsWith("access-control-") || key === "clear-site-data";
}

/** The cookie goes to this destination alone: its path is put under the base, and its domain goes. */
function scopeCookie(cookie: string, { base, target }: Scope): string {
  const [pair = "", ...attributes] = cookie.split(";");
  let path = defaultPath(target);
  const kept = attributes.filter((attribute) => {
    const [name = "", value = ""] = attribute.split(/=(.*)/s);
    const key = name.trim().toLowerCase();
    if (key === "path") path = value.trim().startsWith("/") ? value.trim() : defaultPath(target);
    return key !== "path" && key !== "domain";
  });
  // A token may hold a semicolon, which would begin another attribute.
  const under = base.replaceAll(";", "%3B");
  return [pair, ...kept, ` Path=${path === "/" ? under : `${under}${path}`}`].join(";");
}

/** RFC 6265 section 5.1.4. */
function defaultPath(target: string): string {
  const [path = "/"] = target.split("?", 1);
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/**
 * A redirect within the destination stays within the base URL. One that leads elsewhere is left as it is: under the
 * base it would look like the same site, and the client would send its own credentials along.
 */
function scopeLocation(location: string, scope: Scope): string {
  const { base, target } = scope;
  if (/^(?:https:)?\/\//i.test(location)) return scopeAbsolute(location, scope);
  if (location.startsWith("/")) return `${base}${location}`;
  if (location === "" || /^(?:[?#]|[a-z][a-z0-9+.-]*:)/i.test(location)) return location;
  const url = URL.parse(location, `https://host${target}`);
  return url === null ? location : `${base}${url.pathname}${url.search}${url.hash}`;
}

function scopeAbsolute(location: string, { base, destination }: Scope): string {
  const [, scheme, authority = "", rest = ""] = /^(https:)?\/\/([^/?#\\]*)(.*)$/is.exec(location) ?? [];
  if (isDestination(authority, destination)) return `${base}${rest.startsWith("/") ? "" : "/"}${rest}`;
  // What leaves the scheme out means the upstream's, which is not this listener's.
  return scheme === undefined ? `https:${location}` : location;
}

function isDestination(text: string, destination: Destination): boolean {
  let authority: Authority;
  try {
    authority = parseAuthority(text, HTTPS_PORT);
  } catch {
    return false;
  }
  const { host, port } = authority;
  if (port !== destination.port) return false;
  return host.kind === "name"
    ? destination.kind === "name" && host.name === destination.host
    : destination.kind === "address" && host.address.text === destination.address.text;
}
