/** Reads a request target as the path that patterns are matched against, or says that origins may differ. Pure. */

export interface PathReading {
  /** Without query; unreserved escapes decoded, the others in upper case (RFC 3986 section 6.2.2). */
  readonly path: string;
  /**
   * `ambiguous`: some origin would act on another path than these bytes spell. `encoded-slash`: only `%2F` makes
   * it so, which a rule may accept. `none`: the target names no path (`OPTIONS *`).
   */
  readonly kind: "clear" | "encoded-slash" | "ambiguous" | "none";
}

/** Raw: other than visible ASCII, a backslash, a parameter. */
const SUSPECT_RAW = /[^\x21-\x7e]|[\\;]/;

/** `//`, or a segment of one or two dots, wherever it stands. */
const SUSPECT_SEGMENT = /\/\/|\/\.\.?(?:\/|$)/;

/** `%` without two hex digits; escaped controls, `%`, backslash: what a second decoder would read again. */
const SUSPECT_ESCAPE = /%(?![0-9A-Fa-f]{2})|%(?:[01][0-9A-Fa-f]|7[Ff]|25|5[Cc])/;

/**
 * Decoded: a dot segment that ends in blanks, which Windows drops, or in what a server behind a decoding proxy takes for
 * a parameter, a query or a fragment (`/..%3B/` through nginx to Tomcat).
 */
const DISGUISED_SEGMENT = /\/\.\.?(?: +|[ ]*[;?#][^/]*)(?:\/|$)/;

const ESCAPE = /%([0-9A-Fa-f]{2})/g;

/** RFC 3986 section 2.3. */
const UNRESERVED = /[A-Za-z0-9._~-]/;

/** Of a request target in origin-form or `*`, as received (latin1). The bytes that leave are never changed. */
export function readPath(target: string): PathReading {
  if (target === "*") return { path: target, kind: "none" };
  const query = target.indexOf("?");
  const path = query === -1 ? target : target.slice(0, query);
  // A fragment has no place in a target, and some origins cut it off before the query.
  const suspect = !path.startsWith("/") || target.includes("#") || SUSPECT_RAW.test(path);
  if (suspect || SUSPECT_SEGMENT.test(path)) return { path, kind: "ambiguous" };
  return path.includes("%") ? readEscaped(path) : { path, kind: "clear" };
}

/** Whether a rule with `paths` must refuse a target that was read so. */
export function isAmbiguous(reading: PathReading, encodedSlashAllowed: boolean): boolean {
  return reading.kind === "ambiguous" || (reading.kind === "encoded-slash" && !encodedSlashAllowed);
}

function readEscaped(path: string): PathReading {
  if (SUSPECT_ESCAPE.test(path)) return { path, kind: "ambiguous" };
  const decoded = path.replace(ESCAPE, decodeUnreserved);
  const slashed = decoded.replaceAll("%2F", "/");
  if (SUSPECT_SEGMENT.test(slashed) || !isUtf8(decoded) || isDisguised(decoded)) {
    return { path, kind: "ambiguous" };
  }
  return { path: decoded, kind: slashed === decoded ? "clear" : "encoded-slash" };
}

function decodeUnreserved(written: string, digits: string): string {
  const char = String.fromCharCode(Number.parseInt(digits, 16));
  return UNRESERVED.test(char) ? char : written.toUpperCase();
}

/** Overlong forms (`%C0%AF`) are a slash to some decoders (Unicode TR 36, section 3.1). */
function isUtf8(path: string): boolean {
  if (!/%[89A-F]/.test(path)) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** `decoded` is well-formed. Full-width dots and slashes are plain ones to whoever normalizes (Unicode TR 36, section 3). */
function isDisguised(decoded: string): boolean {
  const text = decodeURIComponent(decoded);
  const folded = text.normalize("NFKC");
  if (DISGUISED_SEGMENT.test(folded)) return true;
  return folded !== text && (SUSPECT_SEGMENT.test(folded) || separators(folded) > separators(text));
}

function separators(text: string): number {
  return text.replace(/[^/\\;%]/g, "").length;
}
