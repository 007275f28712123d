/** The nouns of one exchange. Types only: this room has no behaviour and imports nothing. */

declare const hostnameBrand: unique symbol;

/** A hostname in canonical form: lower case, A-labels, no trailing dot. Made by `base/hostname.ts` alone. */
export type Hostname = string & { readonly [hostnameBrand]: true };

/** An IP address. An IPv4-mapped IPv6 address is already IPv4 here. Made by `base/ip.ts` alone. */
export interface IpAddress {
  readonly family: 4 | 6;
  /** 4 or 16 bytes, network order. */
  readonly octets: Uint8Array;
  /** Canonical text: dotted decimal, or RFC 5952. Equal addresses have equal text. */
  readonly text: string;
}

/** The door an exchange came in by. A metric label: closed. */
export type Listener = "explicit" | "socks" | "jail" | "gateway" | "reverse" | "dns";

/** Who sent the exchange, as far as the gate can prove it. */
export interface Client {
  /** A configured sandbox id, or undefined where the top-level `network` applies. */
  readonly sandbox: string | undefined;
  /** The peer's address, canonical text. */
  readonly address: string;
  /** Present where it showed a token: what tells later, without being the token, whether that is still the sandbox's. */
  readonly proof?: string;
}

/** Where the exchange wants to go. A name is not yet an address, so the two never share a field. */
export type Destination =
  | { readonly kind: "name"; readonly host: Hostname; readonly port: number }
  | { readonly kind: "address"; readonly address: IpAddress; readonly port: number };

/** `tcp` is bytes that nobody looks into. */
export type Scheme = "https" | "http" | "tcp";

/** How much of the exchange the gate can see, which bounds what a rule may look at. */
export type Visibility = "destination" | "request";

/** One field line. `name` as received, `key` in lower case for comparing, `value` without outer blanks. */
export interface Field {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** Field lines in wire order. Never a record: order and repetition carry meaning. */
export type FieldLines = readonly Field[];

/** The head of one HTTP request. Bodies never enter the model; they stream past it. */
export interface RequestHead {
  readonly method: string;
  /** Origin-form (`/a?b`) or `*`, byte for byte as received (latin1). */
  readonly target: string;
  /** Minor version of HTTP/1: the client spoke 1.0 or 1.1. */
  readonly minor: 0 | 1;
  readonly fields: FieldLines;
  /** Keys of fields that no compression may remember (RFC 7541 section 7.1.3); present in HTTP/2 alone. */
  readonly sensitive?: readonly string[];
}

export interface ResponseHead {
  readonly status: number;
  /** Reason phrase as received (latin1); may be empty. */
  readonly phrase: string;
  readonly minor: 0 | 1;
  readonly fields: FieldLines;
  /** As in `RequestHead`. */
  readonly sensitive?: readonly string[];
}

/** How a message body is delimited on one hop (RFC 9112 section 6.3). `close`: until the peer closes. */
export type Framing =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly length: number }
  | { readonly kind: "chunked" }
  | { readonly kind: "close" };

/** Everything `decide/` may know about an exchange. What is not here cannot sway a decision. */
export interface Question {
  readonly client: Client;
  readonly destination: Destination;
  readonly scheme: Scheme;
  readonly visibility: Visibility;
  /** Present exactly when `visibility` is `request`. */
  readonly request: RequestHead | undefined;
}
