/** Reads a TLS ClientHello, whole, over any fragmentation, without taking part in the handshake (RFC 8446). Pure. */
import { parseHostname } from "../base/hostname.ts";
import type { Hostname } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { Limits } from "../model/limits.ts";
import { ByteCursor } from "./byte-cursor.ts";
import { readHandshake } from "./tls-records.ts";

export interface ClientHello {
  /** Canonical; undefined where no name was sent. */
  readonly serverName: Hostname | undefined;
  /** Protocols offered, in order (latin1). */
  readonly alpn: readonly string[];
  /** An ECH extension is there. GREASE cannot be told from the real one, so it counts. */
  readonly ech: boolean;
  /** Offered versions as numbers (0x0304 is TLS 1.3), GREASE included. */
  readonly versions: readonly number[];
}

export type HelloRead =
  | { readonly kind: "incomplete" }
  | { readonly kind: "not-tls" }
  | { readonly kind: "hello"; readonly hello: ClientHello };

const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const ALPN = 16;
const SUPPORTED_VERSIONS = 43;
/** RFC 9849, and the draft that came before it. */
const ECH = [0xfe0d, 0xffce];
const RANDOM_LENGTH = 32;
const MAX_SESSION_ID = 32;

/**
 * `bytes` are all that the client sent so far. `not-tls`: their beginning is no TLS record (SSLv2 included). Throws
 * `E_BAD_HELLO` on anything that is TLS but not one well-formed ClientHello with at most one valid name.
 */
export function readClientHello(bytes: Buffer, limits: Pick<Limits, "hello_bytes">): HelloRead {
  const read = readHandshake(bytes, limits.hello_bytes);
  if (read.kind !== "message") {
    return read;
  }
  if (read.type !== CLIENT_HELLO) {
    throw badHello("First message is not a ClientHello");
  }
  return { kind: "hello", hello: parseHello(new ByteCursor(read.body)) };
}

function parseHello(cursor: ByteCursor): ClientHello {
  const legacyVersion = cursor.uint16();
  cursor.take(RANDOM_LENGTH);
  const sessionId = cursor.vector8();
  const suites = cursor.vector16();
  const compressions = cursor.vector8();
  if (
    legacyVersion >> 8 !== 3 ||
    sessionId.length > MAX_SESSION_ID ||
    suites.length === 0 ||
    suites.length % 2 === 1 ||
    compressions.length === 0
  ) {
    throw badHello("Malformed ClientHello");
  }
  const extensions = cursor.ended ? new Map<number, Buffer>() : readExtensions(cursor.vector16());
  cursor.end();
  const versions = extensions.get(SUPPORTED_VERSIONS);
  return {
    serverName: readServerName(extensions.get(SERVER_NAME)),
    alpn: readAlpn(extensions.get(ALPN)),
    ech: ECH.some((type) => extensions.has(type)),
    versions: versions === undefined ? [legacyVersion] : readVersions(versions),
  };
}

/** An extension that comes twice would be read by one end and overlooked by the other. */
function readExtensions(bytes: Buffer): Map<number, Buffer> {
  const extensions = new Map<number, Buffer>();
  const cursor = new ByteCursor(bytes);
  while (!cursor.ended) {
    const type = cursor.uint16();
    if (extensions.has(type)) {
      throw badHello("Extension sent twice");
    }
    extensions.set(type, cursor.vector16());
  }
  return extensions;
}

/** RFC 6066 section 3: one host_name. What is no canonical name is refused here, so it reaches no log (D13). */
function readServerName(extension: Buffer | undefined): Hostname | undefined {
  if (extension === undefined) {
    return undefined;
  }
  const outer = new ByteCursor(extension);
  const list = new ByteCursor(outer.vector16());
  outer.end();
  const type = list.uint8();
  const text = list.vector16().toString("latin1");
  const name = parseHostname(text);
  if (!list.ended || type !== HOST_NAME || name === undefined) {
    throw badHello("Server name is not one valid hostname");
  }
  return name;
}

function readAlpn(extension: Buffer | undefined): string[] {
  if (extension === undefined) {
    return [];
  }
  const outer = new ByteCursor(extension);
  const list = new ByteCursor(outer.vector16());
  outer.end();
  const protocols: string[] = [];
  while (!list.ended) {
    protocols.push(list.vector8().toString("latin1"));
  }
  if (protocols.length === 0 || protocols.includes("")) {
    throw badHello("Malformed protocol list");
  }
  return protocols;
}

function readVersions(extension: Buffer): number[] {
  const outer = new ByteCursor(extension);
  const list = new ByteCursor(outer.vector8());
  outer.end();
  const versions: number[] = [];
  while (!list.ended) {
    versions.push(list.uint16());
  }
  if (versions.length === 0) {
    throw badHello("Malformed version list");
  }
  return versions;
}

function badHello(message: string): Failure {
  return new Failure("E_BAD_HELLO", "client", message);
}
