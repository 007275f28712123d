/** Request fields that make some origins act on another method or another URL than the request line says. Pure. */

/** Frameworks: Rails, Symfony, ASP.NET, Google APIs; and what ingress controllers tell their authorizers. */
const METHOD_FIELDS: readonly string[] = [
  "x-http-method-override",
  "x-http-method",
  "x-method-override",
  "x-http-verb-override",
  "x-original-method",
  "x-forwarded-method",
];

/** Symfony, IIS and ASP.NET, Envoy, nginx and Traefik neighbours; `destination` is where WebDAV copies to (RFC 4918). */
const URL_FIELDS: readonly string[] = [
  "x-original-url",
  "x-original-uri",
  "x-original-path",
  "x-rewrite-url",
  "x-rewrite-uri",
  "x-override-url",
  "x-override-uri",
  "x-forwarded-uri",
  "x-forwarded-path",
  "x-http-destinationurl",
  "x-envoy-original-path",
  "destination",
];

const KINDS: ReadonlyMap<string, OverrideKind> = new Map([
  ...METHOD_FIELDS.map((key) => [key, "method"] as const),
  ...URL_FIELDS.map((key) => [key, "url"] as const),
]);

export type OverrideKind = "method" | "url";

/**
 * What a field of this lower-case name overrides; undefined for all others. An underscore counts as a hyphen, since
 * CGI and its heirs (WSGI, Rack, PHP) cannot tell the two apart (RFC 3875 section 4.1.18).
 */
export function overrideKind(key: string): OverrideKind | undefined {
  const first = key.charCodeAt(0);
  // Nearly all fields end here: `d` and `x` alone begin one of the names.
  if (first !== 0x78 && first !== 0x64) return undefined;
  return KINDS.get(key.includes("_") ? key.replaceAll("_", "-") : key);
}
