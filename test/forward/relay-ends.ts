/** A relay between two ends that write down all that is asked of them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { duplexPair } from "node:stream";
import type { TestContext } from "node:test";
import { relay } from "../../src/forward/relay.ts";
import type { Field, FieldLines, Framing, RequestHead, ResponseHead } from "../../src/model/exchange.ts";
import type { Inbound, InboundEvents, OutboundEvents, Raw, Upstream } from "../../src/model/inbound.ts";
import type { Leg } from "../../src/model/leg.ts";
import type { Limits } from "../../src/model/limits.ts";
import { around } from "../support/loopback.ts";

export const NO_BODY: Framing = { kind: "none" };
export const TEN: Framing = { kind: "length", length: 10 };

export function field(name: string, value = "1"): Field {
  return { name, key: name.toLowerCase(), value };
}

export function answer(status: number): ResponseHead {
  return { status, phrase: "OK", minor: 1, fields: [] };
}

export const REQUEST: RequestHead = { method: "POST", target: "/", minor: 1, fields: [] };
const KEY = Buffer.from("sixteen bytes ok").toString("base64");
export const WEBSOCKET: RequestHead = {
  ...REQUEST,
  method: "GET",
  fields: [field("Upgrade", "websocket"), field("Connection", "Upgrade"), field("Sec-WebSocket-Key", KEY)],
};
export const ACCEPTED: FieldLines = [
  field("Upgrade", "websocket"),
  field("Connection", "Upgrade"),
  // RFC 6455 section 1.3.
  field(
    "Sec-WebSocket-Accept",
    createHash("sha1").update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64"),
  ),
];

interface Parts {
  takes: boolean;
  reused: boolean;
  early: { client: string; upstream: string };
}

export type Begun = ReturnType<typeof begin>;

/** A relay between two ends that write down all that is asked of them. */
export function begin(
  leg: Partial<Leg>,
  { wholeAtOnce = false, limits = {} }: { wholeAtOnce?: boolean; limits?: Partial<Limits> } = {},
) {
  const ends = makeEnds();
  const inbound = inboundOf(ends, leg.framing ?? NO_BODY, wholeAtOnce);
  const surroundings = around(limits);
  const relaying = relay(inbound, upstreamOf(ends), { ...LEG, ...leg }, surroundings);
  const { log, parts, heard, sockets } = ends;
  const { client, upstream } = heard;
  assert.ok(client !== undefined && upstream !== undefined);
  return { client, upstream, log, parts, relaying, done: relaying.done, sockets, ...surroundings };
}

function makeEnds() {
  const [near, browser] = duplexPair();
  const [upstreamNear, origin] = duplexPair();
  const parts: Parts = { takes: true, reused: false, early: { client: "", upstream: "" } };
  const heard: { client?: InboundEvents; upstream?: OutboundEvents } = {};
  return { log: [] as string[], parts, heard, near, upstreamNear, sockets: { browser, origin } };
}

type Ends = ReturnType<typeof makeEnds>;

function inboundOf({ log, parts, heard, near }: Ends, framing: Framing, wholeAtOnce: boolean): Inbound {
  return {
    protocol: "http/1.1",
    head: REQUEST,
    framing,
    responded: undefined,
    start(events) {
      log.push("client start");
      heard.client = events;
      if (wholeAtOnce) events.end([]);
    },
    respond: ({ status, phrase }, { kind }) => void log.push(`client respond ${status} ${phrase} ${kind}`),
    inform: ({ status, phrase }) => void log.push(`client inform ${status} ${phrase}`),
    whenLost: () => void log.push("client whenLost"),
    abort: (reset) => void log.push(["client abort", reset].join(" ").trim()),
    closeAfter: () => void log.push("client closeAfter"),
    takeOver({ status }): Raw {
      log.push(`client takeOver ${status}`);
      return { socket: near, early: Buffer.from(parts.early.client) };
    },
    endSide: (trailers) => void log.push(`client endSide ${trailers.map((line) => line.name).join()}`),
    ...sink("client", log, parts),
  };
}

function upstreamOf({ log, parts, heard, upstreamNear }: Ends): Upstream {
  return {
    protocol: "http/1.1",
    peer: undefined,
    websockets: false,
    get reused() {
      return parts.reused;
    },
    send({ method }, { kind }, events) {
      log.push(`up send ${method} ${kind}`);
      heard.upstream = events;
    },
    abort: () => void log.push("up abort"),
    destroy: () => void log.push("up destroy"),
    takeOver(): Raw {
      log.push("up takeOver");
      return { socket: upstreamNear, early: Buffer.from(parts.early.upstream) };
    },
    ...sink("up", log, parts),
  };
}

function sink(name: string, log: string[], parts: Parts) {
  return {
    pause: () => void log.push(`${name} pause`),
    resume: () => void log.push(`${name} resume`),
    write(bytes: Buffer) {
      log.push(`${name} write ${bytes.toString("latin1")}`);
      return parts.takes;
    },
    end: (trailers: FieldLines) => void log.push(`${name} end ${trailers.map((line) => line.name).join()}`),
  };
}

const LEG: Leg = {
  head: REQUEST,
  framing: NO_BODY,
  upgrade: false,
  expectContinue: false,
  response: (head) => head,
  requestTrailers: (trailers) => trailers,
  responseTrailers: (trailers) => trailers,
};

export function beginWaiting(context: TestContext, options: { wholeAtOnce?: boolean } = {}) {
  const clock = context.mock.timers;
  clock.enable({ apis: ["setTimeout"] });
  context.after(() => clock.reset());
  return { clock, ...begin({ framing: TEN, expectContinue: true }, options) };
}
