/** An Http1Connection on a real socket, with a peer at its far end and everything it calls kept for a look. */
import type { TestContext } from "node:test";
import type { Arrival } from "../../src/accept/arrival.ts";
import { Http1Connection } from "../../src/accept/http1-connection.ts";
import { answerFailure } from "../../src/accept/refusal.ts";
import type { Door } from "../../src/model/arrival.ts";
import type { FieldLines, ResponseHead } from "../../src/model/exchange.ts";
import type { Failure } from "../../src/model/failure.ts";
import type { Inbound, InboundEvents } from "../../src/model/inbound.ts";
import type { Limits } from "../../src/model/limits.ts";
import {
  type Around,
  around,
  createPair,
  eventually,
  listenTo,
  type Pair,
  type Peer,
} from "../support/loopback.ts";

export const DOOR: Door = {
  listener: "explicit",
  address: "127.0.0.1",
  tunnel: undefined,
  scheme: "http",
  serverName: undefined,
};

export interface Served extends Around {
  readonly connection: Http1Connection;
  readonly peer: Peer;
  readonly pair: Pair;
  readonly arrivals: Arrival[];
  readonly malformed: Failure[];
  closed: number;
  draining: boolean;
  /** The request of this index, once it is there. */
  request(index: number): Promise<Inbound>;
}

export interface ServeOptions {
  readonly limits?: Partial<Limits>;
  /** Nothing is said to a client whose request is malformed. */
  readonly silent?: boolean;
  readonly onRequest?: (inbound: Inbound) => void;
}

export async function serve(context: TestContext, options: ServeOptions = {}): Promise<Served> {
  const pair = await createPair(context);
  const surroundings = around(options.limits);
  const arrivals: Arrival[] = [];
  const malformed: Failure[] = [];
  const connection = new Http1Connection(
    { socket: pair.near, transport: pair.near },
    DOOR,
    {
      request(arrival) {
        arrivals.push(arrival);
        options.onRequest?.(arrival.inbound);
      },
      malformed(failure) {
        malformed.push(failure);
        const about = { host: undefined, port: undefined, connect: false };
        return options.silent === true ? undefined : answerFailure(failure, about);
      },
      closed() {
        served.closed += 1;
      },
    },
    { ...surroundings, draining: () => served.draining },
  );
  const served: Served = {
    ...surroundings,
    connection,
    peer: listenTo(pair.far),
    pair,
    arrivals,
    malformed,
    closed: 0,
    draining: false,
    async request(index) {
      await eventually(() => arrivals.length > index);
      return (arrivals[index] as Arrival).inbound;
    },
  };
  return served;
}

/** What an exchange hears of its request. */
export interface Heard extends InboundEvents {
  readonly body: Buffer[];
  readonly ended: FieldLines | undefined;
  lost(): Failure | undefined;
  readonly drains: number;
}

export function hear(onData: (bytes: Buffer) => void = () => undefined): Heard {
  let lost: Failure | undefined;
  const heard = {
    body: [] as Buffer[],
    ended: undefined as FieldLines | undefined,
    lost: () => lost,
    drains: 0,
    data(bytes: Buffer) {
      heard.body.push(Buffer.from(bytes));
      onData(bytes);
    },
    end(trailers: FieldLines) {
      heard.ended = trailers;
    },
    drained() {
      heard.drains += 1;
    },
    gone(failure: Failure) {
      lost = failure;
    },
  };
  return heard;
}

export function textOf({ body }: Heard): string {
  return Buffer.concat(body).toString("latin1");
}

export function head(status = 200, ...fields: readonly [string, string][]): ResponseHead {
  const lines = fields.map(([name, value]) => ({ name, key: name.toLowerCase(), value }));
  return { status, phrase: "OK", minor: 1, fields: lines };
}

/** A whole answer with this body. */
export function answer(inbound: Inbound, body: string): void {
  inbound.respond(head(), { kind: "length", length: body.length });
  inbound.write(Buffer.from(body, "latin1"));
  inbound.end([]);
}
