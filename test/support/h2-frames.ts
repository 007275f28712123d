/** HTTP/2 frame by frame: raw peers for what no library would send. */
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { Gate } from "./gate.ts";
import { openWire } from "./h2-client.ts";
import type { Internet } from "./private-internet.ts";
import { PUBLIC_V4 } from "./private-internet.ts";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

export const FLAG = { end: 1, ack: 1, endHeaders: 4 } as const;

export const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NAMES = Object.keys(TYPE);
const NOTHING = Buffer.alloc(0);

export function frame(type: number, flags: number, stream: number, payload: Buffer = NOTHING): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A header block of literals without indexing, lengths up to 16,383. */
export function block(...pairs: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    parts.push(Buffer.of(0), literal(pairs[at] ?? ""), literal(pairs[at + 1] ?? ""));
  }
  return Buffer.concat(parts);
}

/** What a GET for `host` looks like. */
export function getBlock(host: string, ...more: readonly string[]): Buffer {
  return block(":method", "GET", ":scheme", "https", ":authority", host, ":path", "/", ...more);
}

/** `data[4 END]`, `reset(8)`, `headers END`: a frame as the tests write it. */
export function nameOf({ type, flags, payload }: Frame): string {
  const name = NAMES[type] ?? String(type);
  const end = (flags & FLAG.end) !== 0 && type <= TYPE.headers ? " END" : "";
  if (type === TYPE.data) return `${name}[${payload.length}${end}]`;
  if (type === TYPE.reset) return `${name}(${payload.readUInt32BE(0)})`;
  if (type === TYPE.goaway) return `${name}(${payload.readUInt32BE(4)})`;
  return `${name}${end}`;
}

export interface FramePeer {
  readonly socket: Duplex;
  /** Every frame of a stream, and GOAWAY; WINDOW_UPDATE and PRIORITY aside. */
  readonly frames: readonly Frame[];
  readonly closed: boolean;
  send(...frames: readonly Buffer[]): void;
  /** The names of the frames of one stream so far. */
  seen(stream: number): string;
  until(what: string, condition: () => boolean, ms?: number): Promise<void>;
}

/** A client: CONNECT and TLS through the gate, then frames. */
export async function openFrames(internet: Internet, gate: Gate, host: string): Promise<FramePeer> {
  const wire = await openWire(internet, gate, host, ["h2"]);
  const peer = peerOf(wire.socket, 0);
  peer.send(Buffer.from(PREFACE), frame(TYPE.settings, 0, 0));
  return peer;
}

/** An origin: `serve` is called for each connection, and then for none of its frames but by `peer`. */
export async function createFrameOrigin(
  internet: Internet,
  host: string,
  onFrame: (frame: Frame, peer: FramePeer) => void,
  address: string = PUBLIC_V4,
): Promise<readonly FramePeer[]> {
  const listener = await internet.net.listen(address, 443);
  listener.unref();
  const secureContext = internet.authority.context(host);
  const peers: FramePeer[] = [];
  listener.on("connection", (raw) => {
    raw.on("error", () => undefined);
    const socket = new TLSSocket(raw, { isServer: true, secureContext, ALPNProtocols: ["h2"] });
    const peer = peerOf(socket, PREFACE.length, (one) => onFrame(one, peer));
    peers.push(peer);
    peer.send(frame(TYPE.settings, 0, 0));
    internet.onClose(() => raw.destroy());
  });
  internet.onClose(() => listener.close());
  return peers;
}

function peerOf(socket: Duplex, skip: number, onFrame: (frame: Frame) => void = () => undefined): FramePeer {
  const frames: Frame[] = [];
  const wakers = new Set<() => void>();
  let closed = false;
  const wake = (): void => {
    for (const waker of wakers) waker();
  };
  socket.on("error", () => undefined);
  socket.on("end", () => socket.end());
  socket.on("close", () => {
    closed = true;
    wake();
  });
  const cut = cutter(skip);
  socket.on("data", (bytes: Buffer) => {
    for (const one of cut(bytes)) {
      const asks = one.type === TYPE.settings && (one.flags & FLAG.ack) === 0;
      if (asks) socket.write(frame(TYPE.settings, FLAG.ack, 0));
      if (isTelling(one)) frames.push(one);
      onFrame(one);
    }
    wake();
  });
  return {
    socket,
    frames,
    get closed() {
      return closed;
    },
    send: (...all) => void (socket.writable && socket.write(Buffer.concat(all))),
    seen: (stream) =>
      frames
        .filter((one) => one.stream === stream)
        .map(nameOf)
        .join(" "),
    until: (what, condition, ms = 5_000) => {
      const seen = () => `${what}; seen: ${frames.map(nameOf).join(" ")}`;
      return wait(wakers, seen, condition, ms);
    },
  };
}

function isTelling({ type, stream }: Frame): boolean {
  return (stream !== 0 && type !== TYPE.window && type !== TYPE.priority) || type === TYPE.goaway;
}

/** Takes bytes as they come, gives whole frames. */
function cutter(skip: number): (bytes: Buffer) => readonly Frame[] {
  let pending: Buffer = NOTHING;
  let toSkip = skip;
  return (bytes) => {
    pending = Buffer.concat([pending, bytes]);
    if (pending.length < toSkip) return [];
    pending = pending.subarray(toSkip);
    toSkip = 0;
    const frames: Frame[] = [];
    while (pending.length >= 9 && pending.length >= 9 + pending.readUIntBE(0, 3)) {
      const end = 9 + pending.readUIntBE(0, 3);
      const [type = 0, flags = 0] = pending.subarray(3, 5);
      frames.push({
        type,
        flags,
        stream: pending.readUInt32BE(5) & 0x7fffffff,
        payload: pending.subarray(9, end),
      });
      pending = pending.subarray(end);
    }
    return frames;
  };
}

/** Every wait is for an event; the time is only how long a failing test takes. */
function wait(
  wakers: Set<() => void>,
  what: () => string,
  condition: () => boolean,
  ms: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(() => reject(new Error(`Waited in vain for ${what()}`))), ms);
    function finish(report: () => void): void {
      clearTimeout(timer);
      wakers.delete(check);
      report();
    }
    function check(): void {
      if (condition()) finish(resolve);
    }
    wakers.add(check);
    check();
  });
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  return Buffer.concat([lengthOf(bytes.length), bytes]);
}

/** RFC 7541 section 5.1, a prefix of 7 bits. */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.of(length);
  const rest = length - 127;
  return rest < 128 ? Buffer.of(127, rest) : Buffer.of(127, (rest & 127) | 128, rest >> 7);
}
