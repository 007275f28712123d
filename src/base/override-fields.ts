/** Fields and query parameters that make some origins act on another method or another URL than the request line says. Pure. */

/** Frameworks: Rails, Symfony, ASP.NET, Google APIs; and what ingress controllers tell their authorizers. */
const METHOD_FIELDS: readonly string[] = [
  "x-http-method-override",
  "x-http-method",
  "http-method-override",
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
  "x-http-path-override",
  "destination",
];

/** Query parameters: WordPress, Symfony and Rack; Graph APIs. Both as PHP calls them, which knows neither `.` nor `-` nor blanks. */
const METHOD_PARAMETERS: ReadonlySet<string> = new Set([
  "_method",
  "method",
  ...METHOD_FIELDS.map((field) => field.replaceAll("-", "_")),
]);
/** In each of these names, or in what may be one in disguise. */
const MAY_NAME_ONE = /met|verb|%/i;
const METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "TRACE",
]);

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
  // Nearly all fields end here: `d`, `h` and `x` alone begin one of the names.
  if (first !== 0x78 && first !== 0x64 && first !== 0x68) return undefined;
  return KINDS.get(key.includes("_") ? key.replaceAll("_", "-") : key);
}

/** Methods, in upper case, that the target's query asks for. `method=` means many things: only what is a method counts. */
export function methodsInQuery(target: string): readonly string[] {
  const mark = target.indexOf("?");
  if (mark === -1 || !MAY_NAME_ONE.test(target)) return [];
  return target
    .slice(mark + 1)
    .split(/[&;]/)
    .filter((pair) => MAY_NAME_ONE.test(pair))
    .flatMap((pair) => {
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      if (!METHOD_PARAMETERS.has(parameterName(unescaped(name)))) return [];
      const method = unescaped(value).trim().toUpperCase();
      return METHODS.has(method) ? [method] : [];
    });
}

function parameterName(name: string): string {
  return name
    .replace(/^ +|\0.*$/gs, "")
    .replaceAll(/[ .[-]/g, "_")
    .toLowerCase();
}

function unescaped(text: string): string {
  return text
    .replaceAll("+", " ")
    .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
}
