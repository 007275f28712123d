/** `host[:port]`, from text to a destination that can be compared (RFC 3986 section 3.2, RFC 9110 section 4.2). Pure. */
import { parseHostname } from "../base/hostname.ts";
import { parseIpAddress } from "../base/ip.ts";
import type { Hostname, IpAddress } from "../model/exchange.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface Authority {
  readonly host:
    | { readonly kind: "name"; readonly name: Hostname }
    | { readonly kind: "address"; readonly address: IpAddress };
  readonly port: number;
}

/** Host and port are split by this alone: no userinfo, no percent sign, no zone id, no blank comes through. */
const AUTHORITY = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([1-9][0-9]{0,4}))?$/;
const MAX_PORT = 65_535;

/**
 * An IPv6 literal stands in brackets, an IPv4 literal is four plain decimals; what a resolver could take for another
 * spelling of an address (`127.1`, `0x7f.1`, `2130706433`) is refused. Throws `E_BAD_REQUEST`.
 */
export function parseAuthority(text: string, defaultPort: number): Authority {
  return readAuthority(text, defaultPort);
}

/** The same where the port must be given, as in authority-form. */
export function parseAuthorityWithPort(text: string): Authority {
  return readAuthority(text, undefined);
}

function readAuthority(text: string, defaultPort: number | undefined): Authority {
  const match = AUTHORITY.exec(text);
  if (match === null) {
    throw protocolFailure("client", "Malformed authority");
  }
  const port = match[2] === undefined ? defaultPort : Number(match[2]);
  if (port === undefined || port > MAX_PORT) {
    throw protocolFailure("client", "Authority without a valid port");
  }
  const host = readHost(String(match[1]));
  if (host === undefined) {
    throw protocolFailure("client", "Authority without a valid host");
  }
  return { host, port };
}

function readHost(text: string): Authority["host"] | undefined {
  const bracketed = text.startsWith("[");
  const address = parseIpAddress(bracketed ? text.slice(1, -1) : text);
  if (address !== undefined) {
    return bracketed && !text.includes(":") ? undefined : { kind: "address", address };
  }
  const name = bracketed ? undefined : parseHostname(text);
  return name === undefined ? undefined : { kind: "name", name };
}
