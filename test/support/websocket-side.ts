/** One side of a WebSocket on a stream of HTTP/2: says what a test has it say, and writes down all that it hears. */
import { createHash } from "node:crypto";
import type { Http2Stream } from "node:http2";
import { watchEnd } from "../../src/base/genuine-end.ts";
import { createFrameReader, type WsFrame, wsFrame } from "./websocket-frames.ts";

export interface Side {
  readonly stream: Http2Stream;
  /** What was heard: frames, END_STREAM, and last the code of the close. */
  readonly heard: readonly string[];
  /** Bytes of frames. */
  readonly received: number;
  readonly closed: Promise<void>;
  /** The next frame; undefined: none follows. */
  next(): Promise<WsFrame | undefined>;
  say(opcode: number, payload?: Buffer | string, fin?: boolean): void;
  /** Resolves once END_STREAM came, or nothing can come any more. */
  readonly ended: Promise<void>;
  end(): void;
  reset(code: number): void;
}

/** `stream` waits for trailers. `masks`: it is the client's. */
export function sideOf(stream: Http2Stream, masks: boolean): Side {
  const heard: string[] = [];
  const frames: WsFrame[] = [];
  const ending = watchEnd(stream, false);
  const read = createFrameReader();
  let over = false;
  let received = 0;
  let wake: () => void = () => undefined;
  stream.on("error", () => undefined);
  stream.on("data", (bytes: Buffer) => {
    received += bytes.length;
    for (const frame of read(bytes)) {
      heard.push(textOf(frame));
      frames.push(frame);
    }
    wake();
  });
  const ended = new Promise<void>((resolve) => {
    const stop = (): void => {
      over = true;
      wake();
      resolve();
    };
    stream.on("end", () => {
      if (ending.genuine) heard.push("END_STREAM");
      stop();
    });
    stream.on("close", stop);
  });
  // A stream that is reset ends its writable side first, and would send END_STREAM before the reset.
  stream.on("wantTrailers", () => {
    if (!stream.closed) stream.sendTrailers({});
  });
  const closed = new Promise<void>((resolve) => {
    stream.on("close", () => {
      heard.push(`close ${stream.rstCode}`);
      resolve();
    });
  });
  return {
    stream,
    heard,
    get received() {
      return received;
    },
    closed,
    ended,
    async next() {
      while (frames.length === 0 && !over) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return frames.shift();
    },
    say: (opcode, payload, fin = true) => {
      if (stream.writable) stream.write(wsFrame(opcode, payload, { fin, masked: masks }));
    },
    end: () => void stream.end(),
    reset: (code) => stream.close(code),
  };
}

function textOf({ fin, opcode, masked, payload }: WsFrame): string {
  const short = payload.length <= 130 ? payload.toString("latin1") : digestOf(payload);
  return `${opcode}${fin ? "" : " more"}${masked ? " masked" : ""} ${payload.length} ${short}`;
}

function digestOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
