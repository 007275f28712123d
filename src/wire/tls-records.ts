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
const MAX_RECORDS = 1_024;

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

function assemble(bytes: Buffer, most: number): HandshakeRead {
  const fragments: Buffer[] = [];
  let gathered = 0;
  let needed: number | undefined;
  for (let at = 0; at + RECORD_HEADER <= bytes.length && fragments.length < MAX_RECORDS; ) {
    const end = at + RECORD_HEADER + fragmentLength(bytes, at);
    const fragment = bytes.subarray(at + RECORD_HEADER, end);
    fragments.push(fragment);
    gathered += fragment.length;
    needed ??= gathered < MESSAGE_HEADER ? undefined : messageLength(fragments, most);
    if (needed !== undefined && gathered >= needed && end <= bytes.length) {
      return message(fragments, gathered, needed);
    }
    at = end;
  }
  if (bytes.length > most || fragments.length >= MAX_RECORDS) {
    throw badHello("ClientHello too long");
  }
  return { kind: "incomplete" };
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
function messageLength(fragments: readonly Buffer[], most: number): number {
  const length = MESSAGE_HEADER + Buffer.concat(fragments).readUIntBE(1, 3);
  if (length > most) {
    throw badHello("ClientHello too long");
  }
  return length;
}

function message(fragments: readonly Buffer[], gathered: number, needed: number): HandshakeRead {
  if (gathered > needed) {
    throw badHello("ClientHello shares a record with what follows");
  }
  const bytes = Buffer.concat(fragments);
  return { kind: "message", type: bytes.readUInt8(0), body: bytes.subarray(MESSAGE_HEADER) };
}

function badHello(message: string): Failure {
  return new Failure("E_BAD_HELLO", "client", message);
}
