/** A parent proxy on the loopback that answers as it is told, and the parts that lead to it. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { parseHostname } from "../../src/base/hostname.ts";
import { parseIpAddress } from "../../src/base/ip.ts";
import { createParent, type Parent } from "../../src/forward/parent.ts";
import type { UpstreamTls } from "../../src/forward/upstream-tls.ts";
import type {
  AddressDecision,
  Denial,
  Dialable,
  HandOverDecision,
  Permit,
} from "../../src/model/decision.ts";
import type { Destination, Hostname, IpAddress } from "../../src/model/exchange.ts";
import type { Route, Secret } from "../../src/model/leg.ts";
import type { ParentSource } from "../../src/model/policy.ts";
import { around, listenTo, type Peer } from "../support/loopback.ts";

export const NOT_PUBLIC: Denial = { verdict: "deny", reason: "address-not-public", rule: undefined };

export interface Parted {
  readonly parent: Parent;
  readonly port: number;
  /** Each connection to the proxy. */
  readonly heard: Peer[];
  /** Names that were looked up. */
  readonly resolved: string[];
  readonly secured: Destination[];
  readonly parts: {
    readonly limits: ReturnType<typeof around>["limits"];
    readonly resolver: { resolve(host: string): Promise<IpAddress[]>; servers(): string[]; close(): void };
  };
}

export interface PartedOptions {
  readonly source?: Partial<ParentSource>;
  /** What it answers to each request, by its first line. */
  readonly answer?: (line: string) => string;
  /** Of every name. */
  readonly addresses?: readonly string[];
  readonly refused?: readonly string[];
  readonly hosts?: ReadonlyMap<string, readonly IpAddress[]>;
}

export const CONSENT = "HTTP/1.1 200 OK\r\n\r\n";

export async function parted(context: TestContext, options: PartedOptions = {}): Promise<Parted> {
  const heard: Peer[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const peer = listenTo(socket);
    heard.push(peer);
    peer.until("\r\n\r\n").then(
      (text) => peer.send(options.answer?.(text.split("\r\n")[0] ?? "") ?? CONSENT),
      () => undefined,
    );
    context.after(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const resolved: string[] = [];
  const secured: Destination[] = [];
  const { limits } = around();
  const resolver = {
    async resolve(host: string) {
      resolved.push(host);
      return (options.addresses ?? ["127.0.0.1"]).map(literal);
    },
    servers: () => [],
    close: () => undefined,
  };
  const tls: UpstreamTls = {
    secure: async (socket: Socket, destination: Destination) => {
      secured.push(destination);
      return socket;
    },
  } as unknown as UpstreamTls;
  const source: ParentSource = {
    scheme: "http",
    destination: { kind: "address", address: literal("127.0.0.1"), port },
    auth: undefined,
    bypass: [],
    resolve: "local",
    ...options.source,
  };
  const guard = (address: IpAddress): AddressDecision =>
    options.refused?.includes(address.text)
      ? NOT_PUBLIC
      : { verdict: "allow", dialable: { address, port } as Dialable };
  const parent = createParent({ source, guard, hosts: options.hosts ?? new Map(), resolver, tls, limits });
  return { parent, port, heard, resolved, secured, parts: { limits, resolver } };
}

export function literal(text: string): IpAddress {
  const address = parseIpAddress(text);
  if (address === undefined) throw new TypeError(text);
  return address;
}

export function destinationTo(host: string, port = 443): Destination {
  const address = parseIpAddress(host);
  if (address !== undefined) return { kind: "address", address, port };
  return { kind: "name", host: parseHostname(host) as Hostname, port };
}

export interface RouteOptions {
  readonly scheme?: "http" | "https" | "tcp";
  readonly port?: number;
  /** Addresses that policy refuses. */
  readonly refused?: readonly string[];
  readonly handOver?: () => HandOverDecision;
  readonly parentAuth?: () => Secret;
}

export function routeTo(host: string, options: RouteOptions = {}): Route {
  const { scheme = "https", port = 443, refused = [], handOver, parentAuth } = options;
  const destination = destinationTo(host, port);
  return {
    permit: { destination, scheme, rule: "a" } as unknown as Permit,
    guard: (address) =>
      refused.includes(address.text)
        ? NOT_PUBLIC
        : { verdict: "allow", dialable: { address, port } as Dialable },
    handOver,
    parentAuth,
    poolKey: "key",
    freshKey: "key",
    alpn: ["http/1.1"],
  };
}
