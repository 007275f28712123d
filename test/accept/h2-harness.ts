/** An Http2Connection on a real socket, with a client of `node:http2` at its far end. */
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import type { Arrival } from "../../src/accept/arrival.ts";
import { Http2Connection } from "../../src/accept/h2-connection.ts";
import { answerFailure } from "../../src/accept/refusal.ts";
import type { Failure } from "../../src/model/failure.ts";
import type { Limits } from "../../src/model/limits.ts";
import { type Around, around, createPair, eventually, type Pair } from "../support/loopback.ts";
import { DOOR } from "./harness.ts";

export interface ServedH2 extends Around {
  readonly connection: Http2Connection;
  readonly client: ClientHttp2Session;
  readonly pair: Pair;
  readonly arrivals: Arrival[];
  readonly malformed: Failure[];
  closed: number;
  draining: boolean;
  arrival(index: number): Promise<Arrival>;
  /** Opens a stream; pseudo fields that are missing are those of a GET. */
  ask(pairs?: readonly string[], whole?: boolean): ClientHttp2Stream;
}

export interface ServeH2Options {
  readonly limits?: Partial<Limits>;
  readonly websockets?: boolean;
  readonly silent?: boolean;
}

/** The code under test takes a TLS socket; it does nothing with it that a plain one cannot. */
export async function serveH2(context: TestContext, options: ServeH2Options = {}): Promise<ServedH2> {
  const pair = await createPair(context);
  for (const socket of [pair.near, pair.far]) socket.on("error", () => undefined);
  const surroundings = around(options.limits);
  const arrivals: Arrival[] = [];
  const malformed: Failure[] = [];
  const { websockets = false } = options;
  const connection = new Http2Connection(
    { socket: pair.near as unknown as TLSSocket, transport: pair.near, websockets },
    { ...DOOR, scheme: "https" },
    {
      request: (arrival) => void arrivals.push(arrival),
      malformed(failure) {
        malformed.push(failure);
        const about = { host: undefined, port: undefined, connect: false };
        return options.silent === true ? undefined : answerFailure(failure, about);
      },
      closed: () => {
        served.closed += 1;
      },
    },
    { ...surroundings, draining: () => served.draining },
  );
  const client = connect("http://a.example", { createConnection: () => pair.far });
  client.on("error", () => undefined);
  const served: ServedH2 = {
    ...surroundings,
    connection,
    client,
    pair,
    arrivals,
    malformed,
    closed: 0,
    draining: false,
    async arrival(index) {
      await eventually(() => arrivals.length > index);
      return arrivals[index] as Arrival;
    },
    ask(pairs = [], whole = true) {
      const names = pairs.filter((_, at) => at % 2 === 0);
      const pseudo = PSEUDO.filter(([name]) => !names.includes(name)).flat();
      const stream = client.request([...pseudo, ...pairs], { endStream: whole });
      stream.on("error", () => undefined);
      return stream;
    },
  };
  return served;
}

const PSEUDO: readonly (readonly [name: string, value: string])[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "a.example"],
  [":path", "/"],
];
