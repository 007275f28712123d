/** Puts the first TLS handshake message together from the records that carry it (RFC 8446 section 5.1). Pure. */
import { Failure } from "../model/failure.ts";

export type HandshakeRead =
  | { readonly kind: "incomplete" }
  | { readonly kind: "not-tls" }
  | { readonly kind: "message"; readonly type: number; readonly body: Buffer };

const HANDSHAKE = 22;
/** Content types of records are 20 to 24; no protocol that we tell apart begins with one of them. */
const FIRST_TYPE = 20;
const LAST_TYPE = 24;
const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const MAX_FRAGMENT = 16_384;
/** A hello in records of one byte each is honest if odd; each arrival walks them all, so their number is bounded. */
const MAX_RECORDS = 4_096;

/** `most`: bytes that the message may take with all its records. Throws `E_BAD_HELLO`. */
export function readHandshake(bytes: Buffer, most: number): HandshakeRead {
  const [type, major] = bytes;
  if (type === undefined) {
    return { kind: "incomplete" };
  }
  if (type < FIRST_TYPE || type > LAST_TYPE || (major !== undefined && major !== 3)) {
    return { kind: "not-tls" };
  }
  if (type !== HANDSHAKE) {
    throw badHello("Record other than handshake comes first");
  }
  return assemble(bytes, most);
}

/** Walks the records' headers first: what is not whole yet is walked again with the next bytes, so nothing is copied. */
function assemble(bytes: Buffer, most: number): HandshakeRead {
  let at = 0;
  let gathered = 0;
  let needed: number | undefined;
  for (let count = 0; count < MAX_RECORDS && at + RECORD_HEADER <= bytes.length; count += 1) {
    const end = at + RECORD_HEADER + fragmentLength(bytes, at);
    gathered += Math.min(end, bytes.length) - at - RECORD_HEADER;
    needed ??= gathered < MESSAGE_HEADER ? undefined : messageLength(payload(bytes, end), most);
    if (needed !== undefined && gathered >= needed && end <= bytes.length) {
      return message(payload(bytes, end), needed);
    }
    at = end;
  }
  if (bytes.length > most || at + RECORD_HEADER <= bytes.length) {
    throw badHello("ClientHello too long");
  }
  return { kind: "incomplete" };
}

/** What the records that begin before `end` carry, the last one possibly cut. */
function payload(bytes: Buffer, end: number): Buffer {
  const fragments: Buffer[] = [];
  for (let at = 0; at < end; ) {
    const from = at + RECORD_HEADER;
    at = from + bytes.readUInt16BE(at + 3);
    fragments.push(bytes.subarray(from, at));
  }
  return Buffer.concat(fragments);
}

/** An empty fragment would let records come without end (RFC 8446 section 5.1). */
function fragmentLength(bytes: Buffer, at: number): number {
  const length = bytes.readUInt16BE(at + 3);
  if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3 || length === 0 || length > MAX_FRAGMENT) {
    throw badHello("Malformed record in the ClientHello");
  }
  return length;
}

/** Of the message with its header. */
function messageLength(start: Buffer, most: number): number {
  const length = MESSAGE_HEADER + start.readUIntBE(1, 3);
  if (length > most) {
    throw badHello("ClientHello too long");
  }
  return length;
}

function message(bytes: Buffer, needed: number): HandshakeRead {
  if (bytes.length > needed) {
    throw badHello("ClientHello shares a record with what follows");
  }
  return { kind: "message", type: bytes.readUInt8(0), body: bytes.subarray(MESSAGE_HEADER) };
}

function badHello(message: string): Failure {
  return new Failure("E_BAD_HELLO", "client", message);
}
