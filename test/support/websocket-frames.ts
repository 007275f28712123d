/** WebSocket frames (RFC 6455 section 5.2) as bytes: written as a test says, and read as they come. Pure. */

export interface WsFrame {
  readonly fin: boolean;
  readonly opcode: number;
  readonly masked: boolean;
  /** Unmasked. */
  readonly payload: Buffer;
}

export interface FrameOptions {
  readonly fin?: boolean;
  readonly masked?: boolean;
}

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const MASK = Buffer.from("3a5cf017", "hex");

export function wsFrame(opcode: number, payload: Buffer | string = "", options: FrameOptions = {}): Buffer {
  const { fin = true, masked = false } = options;
  const bytes = Buffer.from(payload);
  const first = Buffer.of((fin ? 0x80 : 0) | opcode);
  const parts = [first, lengthOf(bytes.length, masked ? 0x80 : 0)];
  return Buffer.concat(masked ? [...parts, MASK, masking(bytes, MASK)] : [...parts, bytes]);
}

/** The payload of a close. */
export function closing(code: number, reason = ""): Buffer {
  return Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]);
}

/** Takes bytes as they come, gives whole frames. */
export function createFrameReader(): (bytes: Buffer) => readonly WsFrame[] {
  let pieces: Buffer[] = [];
  let held = 0;
  let wanted = 2;
  return (bytes) => {
    pieces.push(bytes);
    held += bytes.length;
    if (held < wanted) return [];
    let rest = Buffer.concat(pieces);
    const frames: WsFrame[] = [];
    wanted = sizeOf(rest);
    while (rest.length >= wanted) {
      frames.push(readFrame(rest.subarray(0, wanted)));
      rest = rest.subarray(wanted);
      wanted = sizeOf(rest);
    }
    pieces = [rest];
    held = rest.length;
    return frames;
  };
}

/** How many bytes make the frame that starts here, or say so. */
function sizeOf(bytes: Buffer): number {
  if (bytes.length < 2) return 2;
  const second = bytes.readUInt8(1);
  const { start, short } = layout(second);
  if (bytes.length < start) return start;
  return start + (short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : bytes.readUInt32BE(6));
}

function readFrame(bytes: Buffer): WsFrame {
  const [first = 0, second = 0] = bytes;
  const { start, masked } = layout(second);
  const payload = bytes.subarray(start);
  return {
    fin: (first & 0x80) !== 0,
    opcode: first & 0x0f,
    masked,
    payload: masked ? masking(payload, bytes.subarray(start - 4, start)) : payload,
  };
}

function layout(second: number): { start: number; short: number; masked: boolean } {
  const short = second & 0x7f;
  const masked = (second & 0x80) !== 0;
  const extra = short < 126 ? 0 : short === 126 ? 2 : 8;
  return { start: 2 + extra + (masked ? 4 : 0), short, masked };
}

function lengthOf(length: number, bit: number): Buffer {
  if (length < 126) return Buffer.of(bit | length);
  if (length < 65_536) return Buffer.of(bit | 126, length >> 8, length & 0xff);
  const bytes = Buffer.alloc(9);
  bytes.writeUInt8(bit | 127);
  bytes.writeUInt32BE(length, 5);
  return bytes;
}

function masking(bytes: Buffer, mask: Buffer): Buffer {
  const masked = Buffer.allocUnsafe(bytes.length);
  for (let at = 0; at < bytes.length; at += 1) masked[at] = (bytes[at] ?? 0) ^ (mask[at & 3] ?? 0);
  return masked;
}
