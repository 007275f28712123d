/** An Http1Upstream on a real socket, with an origin at its far end and everything it calls kept for a look. */
import type { TestContext } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import { Http1Upstream, type UpstreamHome } from "../../src/forward/http1-upstream.ts";
import type { FieldLines, Framing, RequestHead, ResponseHead } from "../../src/model/exchange.ts";
import type { Failure } from "../../src/model/failure.ts";
import type { OutboundEvents } from "../../src/model/inbound.ts";
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

export interface Dialled extends Around {
  readonly upstream: Http1Upstream;
  /** The upstream as the tests play it. */
  readonly origin: Peer;
  readonly pair: Pair;
  readonly home: Home;
}

export interface Home extends UpstreamHome {
  /** For how long each was to be kept. */
  readonly idles: number[];
  closes: number;
}

export async function dialled(context: TestContext, limits: Partial<Limits> = {}): Promise<Dialled> {
  const pair = await createPair(context);
  // As `dial` hands it over.
  pair.near.on("error", () => undefined);
  const surroundings = around(limits);
  const home: Home = {
    idles: [],
    closes: 0,
    idle: (_upstream, keepMs) => void home.idles.push(keepMs),
    closed: () => {
      home.closes += 1;
    },
  };
  const upstream = new Http1Upstream(pair.near, "key", {
    ...surroundings,
    home,
    peer: parseIpAddress("127.0.0.1"),
  });
  return { ...surroundings, upstream, origin: listenTo(pair.far), pair, home };
}

/** What the other side of an exchange hears of the answer. */
export interface Answer extends OutboundEvents {
  readonly interim: number[];
  readonly status: number | undefined;
  readonly framing: Framing | undefined;
  readonly body: string;
  readonly trailers: FieldLines | undefined;
  readonly drains: number;
  readonly failure: Failure | undefined;
  readonly untouched: boolean | "unprocessed" | undefined;
  /** Resolves at the end or the failure. */
  over(): Promise<void>;
}

export function hearAnswer(onData: () => void = () => undefined): Answer {
  const heard = {
    interim: [] as number[],
    status: undefined as number | undefined,
    framing: undefined as Framing | undefined,
    body: "",
    trailers: undefined as FieldLines | undefined,
    drains: 0,
    failure: undefined as Failure | undefined,
    untouched: undefined as boolean | "unprocessed" | undefined,
    informed: ({ status }: ResponseHead) => void heard.interim.push(status),
    head({ status }: ResponseHead, framing: Framing) {
      heard.status = status;
      heard.framing = framing;
    },
    data(bytes: Buffer) {
      heard.body += bytes.toString("latin1");
      onData();
    },
    end(trailers: FieldLines) {
      heard.trailers = trailers;
    },
    drained() {
      heard.drains += 1;
    },
    failed(failure: Failure, untouched: boolean | "unprocessed") {
      heard.failure = failure;
      heard.untouched = untouched;
    },
    over: () => eventually(() => heard.trailers !== undefined || heard.failure !== undefined),
  };
  return heard;
}

export function request(method = "GET", target = "/"): RequestHead {
  return { method, target, minor: 1, fields: [{ name: "Host", key: "host", value: "a.example" }] };
}

export const NO_BODY: Framing = { kind: "none" };

/** Sends a request without a body. */
export function ask({ upstream }: Pick<Dialled, "upstream">, head = request()): Answer {
  const heard = hearAnswer();
  upstream.send(head, NO_BODY, heard);
  upstream.end([]);
  return heard;
}
