/** Makes ClientHellos, good and bad, byte by byte. */

export interface HelloParts {
  readonly legacyVersion?: number;
  readonly sessionId?: Buffer;
  readonly suites?: Buffer;
  readonly compressions?: Buffer;
  /** Whole extensions; undefined leaves the block out altogether. */
  readonly extensions?: readonly Buffer[] | undefined;
  /** Bytes after the last field, inside the message. */
  readonly rest?: Buffer;
}

/** The handshake message, without records. */
export function helloMessage(parts: HelloParts = {}): Buffer {
  const extensions = "extensions" in parts ? parts.extensions : [sni("a.example")];
  const body = Buffer.concat([
    uint16(parts.legacyVersion ?? 0x0303),
    Buffer.alloc(32, 7),
    vector8(parts.sessionId ?? Buffer.alloc(32, 1)),
    vector16(parts.suites ?? Buffer.from([0x13, 0x01, 0x13, 0x02])),
    vector8(parts.compressions ?? Buffer.from([0])),
    extensions === undefined ? Buffer.alloc(0) : vector16(Buffer.concat(extensions)),
    parts.rest ?? Buffer.alloc(0),
  ]);
  return handshake(1, body);
}

export function handshake(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, body.length >> 16]), uint16(body.length & 0xffff), body]);
}

/** In records of at most `size` bytes each. */
export function records(message: Buffer, size = 16_384): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    pieces.push(record(22, message.subarray(at, at + size)));
  }
  return Buffer.concat(pieces);
}

export function record(type: number, fragment: Buffer, version = 0x0301): Buffer {
  return Buffer.concat([Buffer.from([type]), uint16(version), vector16(fragment)]);
}

export function hello(parts: HelloParts = {}): Buffer {
  return records(helloMessage(parts));
}

export function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([uint16(type), vector16(data)]);
}

/** A server_name extension with one entry for each name (latin1). */
export function sni(...names: string[]): Buffer {
  return extension(0, vector16(Buffer.concat(names.map((name) => nameEntry(0, name)))));
}

export function nameEntry(type: number, name: string): Buffer {
  return Buffer.concat([Buffer.from([type]), vector16(Buffer.from(name, "latin1"))]);
}

export function alpn(...protocols: string[]): Buffer {
  return extension(
    16,
    vector16(Buffer.concat(protocols.map((each) => vector8(Buffer.from(each, "latin1"))))),
  );
}

export function versions(...numbers: number[]): Buffer {
  return extension(43, vector8(Buffer.concat(numbers.map(uint16))));
}

export function vector8(data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([data.length]), data]);
}

export function vector16(data: Buffer): Buffer {
  return Buffer.concat([uint16(data.length), data]);
}

export function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}
