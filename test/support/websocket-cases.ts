/** What is said on a WebSocket over HTTP/2 in the transparency oracle. */
import { once } from "node:events";
import { constants } from "node:http2";
import { closing, OPCODE } from "./websocket-frames.ts";
import type { Side } from "./websocket-side.ts";

type Part = (side: Side) => Promise<void> | void;

export interface WsCase {
  readonly name: string;
  readonly client: Part;
  /** Default: echoes messages, answers pings, and closes in turn. */
  readonly origin?: Part;
  /** Default: 200. */
  readonly status?: number;
  /** Pairs of the request beside the usual. */
  readonly asks?: readonly string[];
  /** Pairs of the answer. */
  readonly says?: readonly string[];
  /** A 103 comes before it. */
  readonly hints?: boolean;
  /** The origin says the first word; the answer waits for one of the client's. */
  readonly late?: boolean;
  /** END_STREAM comes with the head. */
  readonly whole?: { readonly request?: boolean; readonly answer?: boolean };
  /** The connection goes, and of the code only that there is one can be the same. */
  readonly cut?: "client" | "origin";
  /** What the record says of it. */
  readonly failure?: string;
}

const MIB = 1_048_576;
export const SIZES = [0, 1, 125, 126, 65_535, 65_536, MIB];
const CODES = [1000, 1001, 1008, 1011, 3000, 4999];
const RESETS = [
  ["NO_ERROR", constants.NGHTTP2_NO_ERROR],
  ["INTERNAL_ERROR", constants.NGHTTP2_INTERNAL_ERROR],
  ["REFUSED_STREAM", constants.NGHTTP2_REFUSED_STREAM],
  ["CANCEL", constants.NGHTTP2_CANCEL],
  ["ENHANCE_YOUR_CALM", constants.NGHTTP2_ENHANCE_YOUR_CALM],
] as const;
const { text, binary, continuation, close, ping, pong } = OPCODE;

export const WS_CASES: readonly WsCase[] = [
  ...SIZES.flatMap((size) => [
    asking(`a text of ${size} bytes`, (side) => side.say(text, "t".repeat(size))),
    asking(`${size} binary bytes`, (side) => side.say(binary, Buffer.alloc(size, 7))),
  ]),
  asking("fragments", (side) => {
    for (const [opcode, piece] of [
      [text, "a"],
      [continuation, ""],
      [continuation, "b"],
    ] as const) {
      side.say(opcode, piece, false);
    }
    side.say(continuation, "c");
  }),
  asking("fragments with control frames between them", (side) => {
    side.say(text, "a", false);
    side.say(ping, "between");
    side.say(continuation, "b", false);
    side.say(pong, "unasked");
    side.say(continuation, "c");
  }),
  asking("pings of 0 and 125 bytes", (side) => {
    side.say(ping);
    side.say(ping, "p".repeat(125));
  }),
  asking("500 messages at once", (side) => {
    for (let at = 0; at < 500; at += 1) side.say(text, `message ${at}`);
  }),
  asking("a frame with a reserved opcode", (side) => side.say(3, "odd")),
  {
    name: "the origin's ping",
    client: echo,
    async origin(side) {
      side.say(ping, "are you there");
      await side.next();
      side.say(close, closing(1001, "good"));
      await finish(side);
    },
  },
  {
    name: "the origin's early words",
    client: (side) => untilClosed(side),
    async origin(side) {
      for (let at = 0; at < 100; at += 1) side.say(text, `early ${at}`);
      side.say(close, closing(1000));
      await finish(side);
    },
  },
  {
    name: "words behind the head, before the answer",
    late: true,
    async client(side) {
      side.say(text, "early");
      side.say(binary, Buffer.alloc(40_000, 1));
      await closes(side, 2);
    },
  },
  ...CODES.flatMap((code) => [
    asking(`the client's close ${code}`, () => undefined, closing(code, `reason ${code}`)),
    {
      name: `the origin's close ${code}`,
      client: (side: Side) => untilClosed(side),
      async origin(side: Side) {
        side.say(close, closing(code, "ü".repeat(61)));
        await finish(side);
      },
    },
  ]),
  asking("a close without a code", () => undefined, Buffer.alloc(0)),
  {
    name: "ends without a close",
    async client(side) {
      side.say(text, "last");
      side.end();
      await side.ended;
    },
    async origin(side) {
      await side.ended;
      side.end();
    },
  },
  ...[403, 404, 500].map((status) => refused(status, [])),
  refused(401, ["www-authenticate", 'Basic realm="a"', "www-authenticate", "Bearer"]),
  refused(302, ["location", "https://other.example.com/"]),
  { ...refused(503, []), name: "a refusal without a body", whole: { answer: true } },
  {
    ...refused(403, []),
    name: "a refusal, and END_STREAM with the request's head",
    whole: { request: true },
  },
  negotiates("a subprotocol", ["sec-websocket-protocol", "a, b"], ["sec-websocket-protocol", "b"]),
  negotiates("no subprotocol of those offered", ["sec-websocket-protocol", "a, b"], []),
  negotiates(
    "an extension",
    ["sec-websocket-extensions", "permessage-deflate; client_max_window_bits"],
    ["sec-websocket-extensions", "permessage-deflate; server_no_context_takeover"],
  ),
  negotiates(
    "further fields",
    ["cookie", "a=1", "cookie", "b=2", "x-more", "", "origin", "https://page.example"],
    ["x-more", "1", "set-cookie", "a=1", "set-cookie", "b=2; Path=/", "server", "one", "x-more", "2"],
  ),
  { ...negotiates("an answer with 103 before it", [], []), hints: true },
  { ...negotiates("201 instead of 200", [], []), status: 201 },
  ...RESETS.flatMap(([name, code]): WsCase[] => [
    {
      name: `the origin's reset ${name}`,
      client: (side) => side.say(text, "one"),
      async origin(side) {
        await side.next();
        side.reset(code);
      },
      failure: "E_UPSTREAM_PROTOCOL",
    },
    {
      name: `the client's reset ${name}`,
      async client(side) {
        side.say(text, "one");
        await side.next();
        side.reset(code);
      },
    },
    {
      name: `the origin's END_STREAM, then its reset ${name}`,
      async client(side) {
        await side.ended;
        side.say(text, "heard your end");
      },
      async origin(side) {
        side.end();
        await side.next();
        side.reset(code);
      },
      ...(code === constants.NGHTTP2_NO_ERROR ? {} : { failure: "E_UPSTREAM_PROTOCOL" }),
    },
  ]),
  {
    name: "the origin's END_STREAM, then the client's reset",
    async client(side) {
      await side.ended;
      side.reset(constants.NGHTTP2_CANCEL);
    },
    origin: (side) => side.end(),
  },
  {
    name: "the origin's END_STREAM, then the client's reset NO_ERROR",
    async client(side) {
      await side.ended;
      side.reset(constants.NGHTTP2_NO_ERROR);
    },
    origin: (side) => side.end(),
  },
  {
    name: "the client's END_STREAM, then its reset",
    async client(side) {
      side.end();
      await side.next();
      side.reset(constants.NGHTTP2_CANCEL);
    },
    async origin(side) {
      await side.ended;
      side.say(text, "heard your end");
    },
  },
  {
    name: "the client's END_STREAM, then the origin's reset",
    client: (side) => side.end(),
    async origin(side) {
      await side.ended;
      setImmediate(() => side.reset(constants.NGHTTP2_INTERNAL_ERROR));
    },
    failure: "E_UPSTREAM_PROTOCOL",
  },
  {
    name: "the client's END_STREAM, and an origin that goes on",
    async client(side) {
      side.say(text, "my last");
      side.end();
      await side.ended;
    },
    async origin(side) {
      await side.ended;
      for (let at = 0; at < 50; at += 1) side.say(binary, Buffer.alloc(10_000, at));
      side.end();
    },
  },
  {
    name: "the origin's END_STREAM, and a client that goes on",
    async client(side) {
      await side.ended;
      for (let at = 0; at < 50; at += 1) side.say(binary, Buffer.alloc(10_000, at));
      side.end();
    },
    async origin(side) {
      side.say(text, "my last");
      side.end();
      await side.ended;
    },
  },
  {
    name: "the origin's END_STREAM with its head, and a client that goes on",
    whole: { answer: true },
    async client(side) {
      await side.ended;
      side.say(binary, Buffer.alloc(100_000, 1));
      side.end();
    },
    origin: (side) => side.ended,
  },
  {
    name: "the client's END_STREAM with its head, and an origin that goes on",
    whole: { request: true },
    client: (side) => side.ended,
    origin(side) {
      side.say(binary, Buffer.alloc(100_000, 1));
      side.end();
    },
  },
  {
    name: "both ends at once",
    client(side) {
      side.say(text, "a");
      side.end();
    },
    origin(side) {
      side.say(text, "b");
      side.end();
    },
  },
  {
    name: "a connection that the client cuts",
    cut: "client",
    async client(side) {
      side.say(text, "one");
      await side.next();
    },
  },
  {
    name: "the origin's last words, END_STREAM and NO_ERROR at once, to a slow reader",
    async client(side) {
      readSlowly(side);
      await side.ended;
    },
    origin(side) {
      side.say(binary, Buffer.alloc(MIB, 1));
      side.end();
      const look = (): void => {
        if (side.stream.state.localClose === 1) side.reset(constants.NGHTTP2_NO_ERROR);
        else setImmediate(look);
      };
      look();
    },
  },
  {
    name: "8 MiB and their echo, read slowly",
    async client(side) {
      readSlowly(side);
      const { stream } = side;
      for (let at = 0; at < 8; at += 1) {
        side.say(binary, Buffer.alloc(MIB, at));
        if (stream.writableNeedDrain) await once(stream, "drain");
      }
      side.end();
      await side.ended;
    },
    origin: ({ stream }) => void stream.pipe(stream),
  },
];

export async function echo(side: Side): Promise<void> {
  for (let frame = await side.next(); frame !== undefined; frame = await side.next()) {
    const { opcode, payload, fin } = frame;
    if (opcode !== pong) side.say(opcode === ping ? pong : opcode, payload, fin);
    if (opcode === close) side.end();
  }
}

/** Says something, hears as much, then says goodbye. */
function asking(name: string, say: (side: Side) => void, last: Buffer = closing(1000)): WsCase {
  return {
    name,
    async client(side) {
      say(side);
      side.say(close, last);
      await finish(side);
    },
  };
}

/** After so many frames. */
export async function closes(side: Side, after: number): Promise<void> {
  for (let at = 0; at < after; at += 1) await side.next();
  side.say(close, closing(1000));
  await finish(side);
}

/** Until the other side says goodbye too, which then ends first. */
async function finish(side: Side): Promise<void> {
  for (let frame = await side.next(); frame !== undefined; frame = await side.next());
  side.end();
}

function readSlowly({ stream }: Side): void {
  stream.on("data", () => {
    stream.pause();
    setImmediate(() => stream.resume());
  });
}

async function untilClosed(side: Side): Promise<void> {
  await echo(side);
}

/** The client ends its side once it has read the refusal. */
function refused(status: number, says: readonly string[]): WsCase {
  return {
    name: `the refusal ${status}`,
    status,
    says: ["content-type", "text/plain", ...says],
    async client(side) {
      await side.ended;
      side.end();
    },
    origin(side) {
      // A body that reads like a frame.
      side.say(text, `no ${status}`);
      side.end();
    },
  };
}

function negotiates(name: string, asks: readonly string[], says: readonly string[]): WsCase {
  return { ...asking(name, (side) => side.say(text, "one")), asks, says };
}
