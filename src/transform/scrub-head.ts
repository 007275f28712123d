/** Masks secrets in heads and trailers, and says what of a body can be searched. Pure. */
import type { Field, FieldLines, Framing, RequestHead, ResponseHead } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Needles } from "./needles.ts";

const CODINGS = ["gzip", "deflate", "br", "zstd"] as const;
type Coding = (typeof CODINGS)[number];

/** What is done with a body: searched as it is, or decoded first, by these codings from the last to the first. */
interface BodyPlan {
  readonly decode: readonly Coding[];
}

/** Decoders that wait for each other, however few bytes come in. */
const MAX_CODINGS = 3;
/** Azure has one of its own, and Apache answers the name of before HTTP/1.1. */
const RANGES: ReadonlySet<string> = new Set(["range", "request-range", "x-ms-range"]);
/** As many bytes of a secret are known for what they are, wherever they are cut (`needles.ts`). */
const LEAST_PART = 8;
/** What is kept as it is coded: a file that a client stores would be another one decoded, and holds no text. */
const OPAQUE = /^application\/(?:gzip|x-gzip|zip|zstd|x-tar|x-xz|x-bzip2?)\b/i;
/** Charsets in which ASCII is not what it is elsewhere, for a client may ask for one: UTF-7, UTF-32, EBCDIC. UTF-16 is searched. */
const OTHER_ALPHABET =
  /charset\s*=\s*["']?(?:[a-z0-9-]*utf-?(?:7|32)|(?:iso-10646-)?ucs-?4|[a-z-]*ebcdic|(?:cs|x-)?(?:ibm|cp)-?0*(?:37|27\d|28\d|29[07]|42\d|500|8(?:33|38|7[015])|9(?:18|3[013579])|10(?:25|26|47|97)|11(?:12|22|23|3\d|4\d)|13(?:64|71|88|90|99))(?!\d))/i;
/** Of the coded body; they are wrong once it is decoded. */
const OF_CODED =
  /^(?:content-encoding|content-length|content-md5|digest|content-digest|repr-digest|accept-ranges)$/;

/** The lines, the very same where nothing was found in them. Names count too. */
export function scrubFields(fields: FieldLines, needles: Needles): FieldLines {
  if (fields.length === 0) return fields;
  let text = "";
  for (const { name, value } of fields) text += `${name}\n${value}\n`;
  if (scrubText(text, needles) === text) return fields;
  return fields.map((field) => scrubField(field, needles));
}

export function scrubHead(head: ResponseHead, needles: Needles): ResponseHead {
  const fields = scrubFields(head.fields, needles);
  const phrase = scrubText(head.phrase, needles);
  return fields === head.fields && phrase === head.phrase ? head : { ...head, fields, phrase };
}

/**
 * How the body of an answer is searched; undefined where it is not. Throws `E_UPSTREAM_PROTOCOL` for a coding that
 * cannot be read, or a part of a coded body: what is in there would pass unseen.
 */
export function planBody(head: ResponseHead, framing: Framing): BodyPlan | undefined {
  if (framing.kind === "none") return undefined;
  const codings = codingsOf(head.fields);
  const type = valuesOf(head.fields, "content-type");
  if (OTHER_ALPHABET.test(type)) throw unreadable();
  if (codings.length === 0) return { decode: [] };
  if (OPAQUE.test(type)) return { decode: [] };
  if (head.status === 206 || codings.length > MAX_CODINGS) throw unreadable();
  return {
    decode: codings.toReversed().map((coding) => {
      const known = CODINGS.find((candidate) => candidate === coding);
      if (known === undefined) throw unreadable();
      return known;
    }),
  };
}

/** The head of a body that is passed on decoded. Its tag is another's, if a weak one's, than that of the coded bytes. */
export function decodedHead(head: ResponseHead): ResponseHead {
  const fields: Field[] = [];
  for (const field of head.fields) {
    if (OF_CODED.test(field.key)) continue;
    const strong = field.key === "etag" && !field.value.startsWith("W/");
    fields.push(strong ? { ...field, value: `W/${field.value}` } : field);
  }
  return { ...head, fields };
}

/**
 * Asks for no coding that could not be searched, for none of a part, which could not be decoded alone, and for no part
 * that is too small to tell what it is a part of: a server may answer a range with the whole (RFC 9110 section 14.2).
 */
export function acceptReadable(head: RequestHead): RequestHead {
  const ranges = head.fields.filter(({ key }) => RANGES.has(key));
  const narrow = ranges.length > 1 || ranges.some(({ value }) => isNarrow(value));
  const ranged = ranges.length > 0 && !narrow;
  let changed = narrow;
  const asked = narrow ? head.fields.filter(({ key }) => !RANGES.has(key)) : head.fields;
  const fields = asked.map((field) => {
    const value = accepted(field, ranged);
    if (value === field.value) return field;
    changed = true;
    return { ...field, value };
  });
  if (ranged && !fields.some(({ key }) => key === "accept-encoding")) {
    fields.push({ name: "Accept-Encoding", key: "accept-encoding", value: "identity" });
    changed = true;
  }
  return changed ? { ...head, fields } : head;
}

/** Several parts, or one that is neither the beginning nor long enough. */
function isNarrow(range: string): boolean {
  const mark = range.indexOf("=");
  if (mark === -1 || range.slice(0, mark).trim().toLowerCase() !== "bytes") return false;
  // Not by one pattern: blanks around digits that may be missing would take time that grows with their square.
  const ends = range
    .slice(mark + 1)
    .split("-")
    .map((end) => end.trim());
  const [first = "", last = ""] = ends;
  if (ends.length !== 2 || !/^\d*$/.test(first) || !/^\d*$/.test(last)) return true;
  if (first === "") return last === "" || Number(last) < LEAST_PART;
  return last !== "" && Number(first) > 0 && Number(last) - Number(first) + 1 < LEAST_PART;
}

/** Messages of gRPC and Connect are compressed one by one, inside the body. */
function accepted({ key, value }: Field, ranged: boolean): string {
  if (key === "grpc-accept-encoding" || key === "connect-accept-encoding") return "identity";
  if (key !== "accept-encoding") return value;
  return ranged ? "identity" : readable(value);
}

function readable(value: string): string {
  const elements = value.split(",").map((element) => element.trim());
  const kept = elements.filter((element) => {
    const name = element.replace(/;.*/s, "").trim().toLowerCase();
    return name === "identity" || CODINGS.some((coding) => coding === plainCoding(name));
  });
  if (kept.length === elements.length) return value;
  return kept.length === 0 ? "identity" : kept.join(", ");
}

function codingsOf(fields: FieldLines): readonly string[] {
  return valuesOf(fields, "content-encoding")
    .split(",")
    .map((coding) => plainCoding(coding.trim().toLowerCase()))
    .filter((coding) => coding !== "" && coding !== "identity");
}

function valuesOf(fields: FieldLines, name: string): string {
  return fields
    .filter(({ key }) => key === name)
    .map(({ value }) => value)
    .join(",");
}

/** RFC 9110 section 8.4.1.3. */
function plainCoding(name: string): string {
  return name === "x-gzip" ? "gzip" : name;
}

function scrubField(field: Field, needles: Needles): Field {
  const name = scrubText(field.name, needles);
  const value = scrubText(field.value, needles);
  return name === field.name ? { ...field, value } : { name, key: name.toLowerCase(), value };
}

function scrubText(text: string, needles: Needles): string {
  const bytes = Buffer.from(text, "latin1");
  let any = false;
  const masked = Buffer.from(bytes);
  needles.each(bytes, (start, end) => {
    any = true;
    masked.fill("*", start, end);
  });
  return any ? masked.toString("latin1") : text;
}

function unreadable(): Failure {
  return new Failure("E_UPSTREAM_PROTOCOL", "upstream", "The answer is in a coding that cannot be searched");
}
