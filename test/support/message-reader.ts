/** Reads HTTP/1.1 messages off bytes, for origins and clients of the tests: its own small reading, not the product's. */

export interface Message {
  /** `GET / HTTP/1.1` or `HTTP/1.1 200 OK`. */
  readonly start: string;
  /** Field lines in wire order, names as they stand there. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** De-chunked. */
  readonly body: string;
  readonly trailers: readonly (readonly [name: string, value: string])[];
  /** The head's bytes as latin1. */
  readonly head: string;
  /** The body ended as its framing says; false: the connection closed first. */
  readonly complete: boolean;
}

/** `role` says how a message without framing ends: a request has no body, a response lasts until the close. */
export interface ReadOptions {
  readonly role: "request" | "response";
  /** The response is to HEAD, or anything else without a body. */
  readonly bodiless?: boolean;
  /** The response is to CONNECT: a success has no body. */
  readonly connect?: boolean;
  /** No more bytes will come. */
  readonly ended?: boolean;
}

export interface ReadResult {
  readonly message: Message;
  /** How many bytes it took. */
  readonly size: number;
}

interface Body {
  readonly body: string;
  readonly trailers: Message["trailers"];
  readonly size: number;
  readonly complete: boolean;
}

/** Undefined: not whole yet. `text` is latin1. */
export function readMessage(text: string, options: ReadOptions): ReadResult | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = text.slice(0, headEnd + 4);
  const [start = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const fields = lines.map(fieldOf);
  const rest = text.slice(head.length);
  const body = readBody(rest, { ...options, start, fields });
  if (body === undefined) return undefined;
  const { size, ...parts } = body;
  return { message: { start, fields, head, ...parts }, size: head.length + size };
}

/** All values of a field, whatever its case. */
export function valuesOf(message: Pick<Message, "fields">, name: string): readonly string[] {
  return message.fields.filter(([key]) => key.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
}

/** The single value of a field; undefined where it is absent. */
export function oneValue(message: Pick<Message, "fields">, name: string): string | undefined {
  const values = valuesOf(message, name);
  if (values.length > 1) throw new Error(`${name} came ${values.length} times`);
  return values[0];
}

export function statusOf(message: Pick<Message, "start">): number {
  return Number(message.start.split(" ")[1]);
}

function readBody(rest: string, context: ReadOptions & Pick<Message, "start" | "fields">): Body | undefined {
  const ended = context.ended === true;
  if (hasNoBody(context)) return { body: "", trailers: [], size: 0, complete: true };
  if (valuesOf(context, "transfer-encoding").length > 0) {
    const whole = readChunks(rest);
    return whole ?? (ended ? { ...partOf(rest), complete: false } : undefined);
  }
  const length = valuesOf(context, "content-length")[0];
  if (length !== undefined) return readLength(rest, Number(length), ended);
  if (context.role === "request") return { body: "", trailers: [], size: 0, complete: true };
  return ended ? { ...partOf(rest), complete: true } : undefined;
}

function hasNoBody({ bodiless, connect, role, start }: ReadOptions & Pick<Message, "start">): boolean {
  const status = statusOf({ start });
  if (connect === true && status >= 200 && status < 300) return true;
  return bodiless === true || (role === "response" && (status < 200 || status === 204 || status === 304));
}

function readLength(rest: string, length: number, ended: boolean): Body | undefined {
  if (rest.length >= length)
    return { body: rest.slice(0, length), trailers: [], size: length, complete: true };
  return ended ? { ...partOf(rest), complete: false } : undefined;
}

function partOf(rest: string): Omit<Body, "complete"> {
  return { body: rest, trailers: [], size: rest.length };
}

function readChunks(rest: string): Body | undefined {
  let body = "";
  let at = 0;
  for (;;) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(rest.slice(at, lineEnd), 16);
    if (Number.isNaN(size)) throw new Error(`Bad chunk size ${JSON.stringify(rest.slice(at, lineEnd))}`);
    at = lineEnd + 2;
    if (size === 0) break;
    if (rest.length < at + size + 2) return undefined;
    body += rest.slice(at, at + size);
    at += size + 2;
  }
  if (rest.startsWith("\r\n", at)) return { body, trailers: [], size: at + 2, complete: true };
  const end = rest.indexOf("\r\n\r\n", at);
  if (end < 0) return undefined;
  const trailers = rest.slice(at, end).split("\r\n").map(fieldOf);
  return { body, trailers, size: end + 4, complete: true };
}

function fieldOf(line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, "")];
}
