/** The door of clients that cannot trust a CA: a base URL whose first segment is the destination. */

import type { Server } from "node:http";
import type { Cap } from "./accept/connection-caps.ts";
import { listen } from "./accept/listener.ts";
import { isCrossSite } from "./accept/page-guard.ts";
import { type Answer, aboutOf, answerFailure, refusalOf } from "./accept/refusal.ts";
import type { ReverseClient } from "./accept/reverse-client.ts";
import { answerReply, type BaseArrival, createReverseListener } from "./accept/reverse-listener.ts";
import { createReverseRelay, type ReverseRelay } from "./accept/reverse-relay.ts";
import { createStreamPair, type StreamEnd } from "./accept/stream-pair.ts";
import { parseIpAddress } from "./base/ip.ts";
import { seatFor } from "./base/roster.ts";
import { serve } from "./connection.ts";
import { destinationOf, nameOf } from "./identify/identify-destination.ts";
import type { Door } from "./model/arrival.ts";
import type { Endpoint } from "./model/config.ts";
import { deny, type Reason } from "./model/decision.ts";
import type { Client, Destination } from "./model/exchange.ts";
import { asFailure, Failure } from "./model/failure.ts";
import { ExchangeDraft } from "./record/draft.ts";
import { type BaseUrl, parseBaseUrl } from "./wire/base-url.ts";
import { identify, type World } from "./world.ts";

export interface ReverseDoor {
  /** Rejects with `E_CONFIG` where the address cannot be had. */
  listen(): Promise<void>;
  /** Stops accepting; connections that are open stay. */
  close(): void;
}

const HTTPS_PORT = 443;

export function createReverseDoor(endpoint: Endpoint, world: World): ReverseDoor {
  return new RunningDoor(endpoint, world);
}

class RunningDoor implements ReverseDoor {
  readonly #endpoint: Endpoint;
  readonly #world: World;
  readonly #server: Server;
  readonly #relay: ReverseRelay;
  readonly #caps = new WeakMap<ReverseClient, Cap>();

  constructor(endpoint: Endpoint, world: World) {
    this.#endpoint = endpoint;
    this.#world = world;
    this.#relay = createReverseRelay(world.limits);
    this.#server = createReverseListener(world.limits, {
      connected: (client) => this.#connected(client),
      request: (arrival) => this.#request(arrival),
      malformed: (failure, client) => this.#fail(failure, this.#draft(client)),
    });
  }

  listen(): Promise<void> {
    return listen(this.#server, this.#endpoint, "listen.reverse");
  }

  close(): void {
    this.#server.close();
  }

  #connected(client: ReverseClient): boolean {
    const { caps, connections, recorder } = this.#world;
    const cap = caps.open(addressOf(client.socket.remoteAddress));
    if (cap === undefined) return false;
    this.#caps.set(client, cap);
    const seat = seatFor(client);
    connections.add(seat);
    recorder.connectionOpened("reverse");
    client.socket.once("close", () => {
      cap.release();
      connections.remove(seat);
      recorder.connectionClosed("reverse");
    });
    return true;
  }

  /** What is refused here has its record here; what goes on is an exchange like any other. */
  #request(arrival: BaseArrival): void {
    const record = this.#draft(arrival.client);
    const { method, form, rawTarget } = arrival.request;
    record.method = method;
    try {
      if (form !== "origin") throw new Failure("E_BAD_REQUEST", "client", "This listener takes base URLs");
      const url = parseBaseUrl(rawTarget);
      const destination = destinationOf(url.authority);
      record.target = url.target;
      record.asked({ client: undefined, destination });
      const asked = this.#ask(arrival, url);
      if (typeof asked === "string") answerReply(arrival, this.#refuse(asked, record));
      else this.#pass(arrival, url, asked, destination);
    } catch (error) {
      answerReply(arrival, this.#fail(error, record));
    }
  }

  /** Who asks; the reason to refuse where it is a web page, or nobody in particular. */
  #ask({ client, request }: BaseArrival, { credentials }: BaseUrl): Client | Reason {
    const { localAddress, localPort = 0 } = client.socket;
    const { host } = this.#endpoint;
    const everywhere = host === "::" || host === "0.0.0.0";
    const place = { address: addressOf(localAddress), port: localPort, everywhere };
    if (isCrossSite(request.host, request.fields, place)) return "cross-site";
    const claims = {
      address: addressOf(client.socket.remoteAddress),
      proxyAuthorization: basicOf(credentials),
    };
    return identify(claims, this.#world.inForce()) ?? "identity-unknown";
  }

  #pass(arrival: BaseArrival, url: BaseUrl, client: Client, destination: Destination): void {
    const host = hostOf(destination);
    const { base, target } = url;
    this.#relay({
      arrival,
      scope: { base, destination, target },
      host,
      key: `${client.sandbox ?? ""} ${host}`,
      open: () => this.#open(arrival.client, client, destination),
    });
  }

  /** A connection of this process: it was granted one destination, as a tunnel is, and each request must name it. */
  #open(reverse: ReverseClient, client: Client, destination: Destination): StreamEnd {
    const [near, far] = createStreamPair();
    const door: Door = {
      listener: "reverse",
      address: client.address,
      tunnel: { client, destination },
      scheme: "https",
      serverName: undefined,
    };
    const cap = this.#caps.get(reverse);
    // A client whose connection was not counted is gone.
    if (cap === undefined) near.destroy();
    else serve({ socket: far, transport: reverse.socket }, door, cap, this.#world);
    return near;
  }

  #draft(client: ReverseClient): ExchangeDraft {
    const address = addressOf(client.socket.remoteAddress);
    const record = new ExchangeDraft(this.#world.recorder, { listener: "reverse", address });
    record.policy = this.#world.inForce().digest;
    return record;
  }

  #refuse(reason: Reason, record: ExchangeDraft): Answer {
    const denial = deny(reason);
    record.refused(denial);
    return answered(refusalOf(denial, aboutOf(record)), record);
  }

  #fail(error: unknown, record: ExchangeDraft): Answer {
    const failure = asFailure(error);
    record.failed(failure);
    return answered(answerFailure(failure, aboutOf(record)), record);
  }
}

function answered(answer: Answer, record: ExchangeDraft): Answer {
  record.status = answer.status;
  record.end();
  return answer;
}

/** The credentials of the path, as a proxy would have been sent them. */
function basicOf(credentials: string | undefined): string | undefined {
  return credentials === undefined
    ? undefined
    : `Basic ${Buffer.from(credentials, "latin1").toString("base64")}`;
}

function hostOf(destination: Destination): string {
  const name = nameOf(destination);
  const host = name.includes(":") ? `[${name}]` : name;
  return destination.port === HTTPS_PORT ? host : `${host}:${destination.port}`;
}

function addressOf(text: string | undefined): string {
  return parseIpAddress(text ?? "")?.text ?? "";
}
