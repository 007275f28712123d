/** The door of namespaces whose default route is this host: each sandbox's connections and lookups, and its own set of names. */
import type { Socket as Datagrams, RemoteInfo } from "node:dgram";
import type { Server, Socket } from "node:net";
import { listenForDatagrams } from "./accept/datagram-listener.ts";
import { DnsListener } from "./accept/dns-listener.ts";
import { createListener, listen } from "./accept/listener.ts";
import type { OriginalDestination, Redirections } from "./accept/original-destination.ts";
import { parseIpAddress } from "./base/ip.ts";
import { SyntheticNames } from "./base/synthetic.ts";
import { identifyNeighbour, type NeighbourClaims } from "./identify/identify-neighbour.ts";
import { runLookup } from "./lookup.ts";
import type { GatewayEndpoint } from "./model/config.ts";
import { deny } from "./model/decision.ts";
import type { Client } from "./model/exchange.ts";
import type { SandboxSource } from "./model/policy.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { runTransparent } from "./transparent.ts";
import type { World } from "./world.ts";

export interface GatewayDoor {
  /** Rejects with `E_CONFIG` where an address cannot be had. */
  listen(): Promise<void>;
  /** Stops accepting and answering; connections that are open stay. */
  close(): void;
}

interface Front {
  readonly names: SyntheticNames;
  readonly dns: DnsListener;
}

const DNS_PORT = 53;

export interface GatewayOptions {
  readonly gateway: GatewayEndpoint;
  readonly redirections: Redirections;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export function createGatewayDoor(options: GatewayOptions, world: World): GatewayDoor {
  return new RunningDoor(options, world);
}

class RunningDoor implements GatewayDoor {
  readonly #options: GatewayOptions;
  readonly #world: World;
  readonly #tcp: Server;
  readonly #dnsTcp: Server;
  /** By sandbox; everybody shares one where there are none. */
  readonly #fronts = new Map<string | undefined, Front>();
  #dnsUdp: Datagrams | undefined = undefined;

  constructor(options: GatewayOptions, world: World) {
    this.#options = options;
    this.#world = world;
    this.#tcp = createListener((socket) => this.#take(socket));
    this.#dnsTcp = createListener((socket) => this.#takeDns(socket));
  }

  async listen(): Promise<void> {
    const { address, dns } = this.#options.gateway;
    await listen(this.#tcp, address, "listen.gateway.address");
    await listen(this.#dnsTcp, dns, "listen.gateway.dns");
    const socket = await listenForDatagrams(dns, "listen.gateway.dns");
    this.#dnsUdp = socket;
    socket.on("message", (message: Buffer, peer: RemoteInfo) => this.#takeDatagram(socket, message, peer));
  }

  close(): void {
    this.#tcp.close();
    this.#dnsTcp.close();
    this.#dnsUdp?.close();
    this.#dnsUdp = undefined;
  }

  #take(socket: Socket): void {
    const original = this.#options.redirections.originalOf(socket);
    const claims = original && this.#claimsOf(socket);
    const client = claims && this.#known(claims);
    if (original === undefined || claims === undefined || client === undefined) {
      this.#turnAway(socket, original);
      return;
    }
    const { names } = this.#frontOf(client);
    const { address, port } = original;
    // Until the end of the connection its address keeps its name.
    socket.once("close", names.hold(address));
    const identify = (sandboxes: readonly SandboxSource[]): Client | undefined =>
      identifyNeighbour(claims, sandboxes, this.#options.gateway.interfaces);
    const origin = { client, address, port, name: names.nameOf(address), identify };
    runTransparent(socket, origin, "gateway", this.#world);
  }

  #takeDns(socket: Socket): void {
    const original = this.#options.redirections.originalOf(socket);
    const claims = original && this.#claimsOf(socket);
    const client = claims && this.#known(claims);
    if (client === undefined || original?.port !== DNS_PORT) this.#turnAway(socket, original);
    else this.#frontOf(client).dns.serveTcp(socket);
  }

  /** No answer at all for whoever is nobody here: it may not be the one whom its address names. */
  #takeDatagram(socket: Datagrams, message: Buffer, peer: RemoteInfo): void {
    const client = this.#known({ address: addressOf(peer.address), interface: undefined });
    if (client !== undefined) this.#frontOf(client).dns.answerDatagram(socket, message, peer);
  }

  #claimsOf(socket: Socket): NeighbourClaims | undefined {
    const via = this.#options.redirections.interfaceOf(socket);
    return via === undefined ? undefined : { address: addressOf(socket.remoteAddress), interface: via };
  }

  #known(claims: NeighbourClaims): Client | undefined {
    return identifyNeighbour(claims, this.#world.inForce().sandboxes, this.#options.gateway.interfaces);
  }

  #frontOf({ sandbox }: Client): Front {
    const known = this.#fronts.get(sandbox);
    if (known !== undefined) return known;
    const { limits, deadlines } = this.#world;
    const names = new SyntheticNames({ limits, now: this.#options.now });
    const dns = new DnsListener({
      limits,
      deadlines,
      answer: (message, from) => {
        const client = { sandbox, address: addressOf(from) };
        return runLookup(message, { client, names }, this.#world);
      },
    });
    const front = { names, dns };
    this.#fronts.set(sandbox, front);
    return front;
  }

  /** What came by no interface of the gateway's, was not redirected to it, or is of nobody in particular. */
  #turnAway(socket: Socket, original: OriginalDestination | undefined): void {
    const record = new ExchangeDraft(this.#world.recorder, {
      listener: "gateway",
      address: addressOf(socket.remoteAddress),
    });
    record.protocol = "tcp";
    record.visibility = "destination";
    record.policy = this.#world.inForce().digest;
    if (original !== undefined) {
      record.asked({ client: undefined, destination: { kind: "address", ...original } });
    }
    record.refused(deny("identity-unknown"));
    record.end();
    socket.resetAndDestroy();
  }
}

function addressOf(text: string | undefined): string {
  return parseIpAddress((text ?? "").replace(/%.*$/, ""))?.text ?? "";
}
