/** Which fields may stand after a body (RFC 9110 section 6.5.1). Pure. */
import { overrideKind } from "../base/override-fields.ts";
import type { Field } from "../model/exchange.ts";

/** Framing, routing, authentication, request modifiers, response control: a receiver may merge trailers into the head. */
const FORBIDDEN = new Set([
  "transfer-encoding",
  "host",
  "connection",
  "keep-alive",
  "proxy-connection",
  "upgrade",
  "http2-settings",
  "te",
  "trailer",
  "via",
  "forwarded",
  "expect",
  "max-forwards",
  "cache-control",
  "pragma",
  "range",
  "accept-ranges",
  "authorization",
  "proxy-authorization",
  "proxy-authenticate",
  "www-authenticate",
  "cookie",
  "cookie2",
  "set-cookie",
  "set-cookie2",
  "age",
  "date",
  "expires",
  "location",
  "retry-after",
  "vary",
  "warning",
  "alt-svc",
]);
const FORBIDDEN_PREFIXES = ["content-", "if-", "x-forwarded-"];

/** RFC 9530 means Content-Digest for the trailers. `_` counts as `-`, as it does to whoever reads fields as variables. */
export function isTrailer(field: Field): boolean {
  const key = field.key.replaceAll("_", "-");
  if (key === "content-digest") {
    return true;
  }
  return (
    !FORBIDDEN.has(key) &&
    overrideKind(key) === undefined &&
    !FORBIDDEN_PREFIXES.some((prefix) => key.startsWith(prefix))
  );
}
