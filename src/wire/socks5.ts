/** The messages of SOCKS5 (RFC 1928) and its username/password step (RFC 1929). Pure. */
import { parseHostname } from "../base/hostname.ts";
import { ipFromOctets, parseIpAddress } from "../base/ip.ts";
import type { Authority } from "../model/arrival.ts";
import { protocolFailure } from "./protocol-failure.ts";

export const SOCKS_VERSION = 5;

/** RFC 1928 section 3. */
export const METHOD = { none: 0x00, password: 0x02, unacceptable: 0xff } as const;

/** RFC 1928 section 6. */
export const REPLY = {
  succeeded: 0x00,
  failure: 0x01,
  notAllowed: 0x02,
  hostUnreachable: 0x04,
  refused: 0x05,
  expired: 0x06,
  commandNotSupported: 0x07,
  addressNotSupported: 0x08,
} as const;

/** `length`: how many bytes the message takes. Undefined where more bytes are needed. */
export type Read<T> = { readonly value: T; readonly length: number } | undefined;

export interface SocksRequest {
  readonly command: "connect" | "bind" | "associate" | "other";
  /** Undefined: an address type that RFC 1928 does not know. */
  readonly authority: Authority | undefined;
}

const COMMANDS: Readonly<Record<number, SocksRequest["command"]>> = {
  1: "connect",
  2: "bind",
  3: "associate",
};
const IPV4 = 1;
const DOMAIN = 3;
const IPV6 = 4;
/** Version, command, reserved, address type. */
const REQUEST_HEAD = 4;

/** The methods that a client offers. Throws `E_BAD_REQUEST` on another version. */
export function readGreeting(bytes: Buffer): Read<readonly number[]> {
  if (bytes.length < 2) return undefined;
  expectVersion(bytes, SOCKS_VERSION);
  const length = 2 + bytes.readUInt8(1);
  return bytes.length < length ? undefined : { value: [...bytes.subarray(2, length)], length };
}

/** Username and password, as latin1. Throws `E_BAD_REQUEST` on another version of the step. */
export function readCredentials(bytes: Buffer): Read<{ readonly name: string; readonly password: string }> {
  if (bytes.length < 2) return undefined;
  expectVersion(bytes, 1);
  const nameEnd = 2 + bytes.readUInt8(1);
  if (bytes.length <= nameEnd) return undefined;
  const length = nameEnd + 1 + bytes.readUInt8(nameEnd);
  if (bytes.length < length) return undefined;
  const name = bytes.toString("latin1", 2, nameEnd);
  return { value: { name, password: bytes.toString("latin1", nameEnd + 1, length) }, length };
}

/** Throws `E_BAD_REQUEST` on another version, a name that is none (NUL, blanks, other numerals), or port 0. */
export function readSocksRequest(bytes: Buffer): Read<SocksRequest> {
  if (bytes.length <= REQUEST_HEAD) return undefined;
  expectVersion(bytes, SOCKS_VERSION);
  const command = COMMANDS[bytes.readUInt8(1)] ?? "other";
  const size = addressSize(bytes);
  if (size === undefined) return { value: { command, authority: undefined }, length: bytes.length };
  const length = REQUEST_HEAD + size + 2;
  if (bytes.length < length) return undefined;
  const port = bytes.readUInt16BE(length - 2);
  if (port === 0 && command === "connect") throw protocolFailure("client", "Port 0 in a SOCKS request");
  return { value: { command, authority: { host: hostOf(bytes, size), port } }, length };
}

/** A reply; the address in it is never ours to tell. */
export function socksReply(code: number): Buffer {
  return Buffer.of(SOCKS_VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0);
}

function addressSize(bytes: Buffer): number | undefined {
  switch (bytes.readUInt8(3)) {
    case IPV4:
      return 4;
    case IPV6:
      return 16;
    case DOMAIN:
      return 1 + bytes.readUInt8(REQUEST_HEAD);
    default:
      return undefined;
  }
}

function hostOf(bytes: Buffer, size: number): Authority["host"] {
  const octets = bytes.subarray(REQUEST_HEAD, REQUEST_HEAD + size);
  if (bytes.readUInt8(3) !== DOMAIN) {
    const address = ipFromOctets(octets);
    if (address !== undefined) return { kind: "address", address };
  }
  const text = octets.toString("latin1", 1);
  const literal = parseIpAddress(text);
  if (literal !== undefined) return { kind: "address", address: literal };
  const name = parseHostname(text);
  // A14: whatever a resolver might read otherwise than we do never reaches one.
  if (name === undefined) throw protocolFailure("client", "A SOCKS request for what is no hostname");
  return { kind: "name", name };
}

function expectVersion(bytes: Buffer, version: number): void {
  if (bytes.readUInt8(0) !== version) throw protocolFailure("client", "Another version of SOCKS");
}
