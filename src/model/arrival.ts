/** What a listener hands over about one request: claims, none of them believed yet. Types only. */
import type { Client, Destination, Hostname, IpAddress, Listener, Scheme } from "./exchange.ts";
import type { SandboxSource } from "./policy.ts";

/** `host[:port]`, taken apart; the port is the scheme's where none was written. */
export interface Authority {
  readonly host:
    | { readonly kind: "name"; readonly name: Hostname }
    | { readonly kind: "address"; readonly address: IpAddress };
  readonly port: number;
}

/** Where a client that knows of no proxy meant to go, and who it is: its network is ours alone. */
export interface Original {
  readonly client: Client;
  /** As the client dialled it. */
  readonly address: IpAddress;
  readonly port: number;
  /** What the DNS front gave the address out for; undefined for every other address. */
  readonly name: Hostname | undefined;
  /** Who the same connection would be by these sandboxes; absent where the way in is the sandbox's own. */
  readonly identify?: (sandboxes: readonly SandboxSource[]) => Client | undefined;
}

/** Where a request came in. Made once for a connection. */
export interface Door {
  readonly listener: Listener;
  /** The peer's address, canonical text. */
  readonly address: string;
  /** Set inside a tunnel: what CONNECT was granted, and to whom. */
  readonly tunnel: { readonly client: Client; readonly destination: Destination } | undefined;
  /** Set on transparent connections, and on what is inside them. */
  readonly original?: Original;
  readonly scheme: Scheme;
  /** The name in the ClientHello, where TLS was ended here and one was sent. */
  readonly serverName: Hostname | undefined;
}

/** The names that one request claims. They must agree with each other and with the door. */
export interface Claims {
  /** From the request line: CONNECT's target or an absolute-form target. */
  readonly authority: Authority | undefined;
  readonly host: Authority | undefined;
  readonly proxyAuthorization: string | undefined;
}
