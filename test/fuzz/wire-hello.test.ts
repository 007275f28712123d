import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { before, test } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import fc from "fast-check";
import { Failure } from "../../src/model/failure.ts";
import { DEFAULT_LIMITS } from "../../src/model/limits.ts";
import { type ClientHello, readClientHello } from "../../src/wire/client-hello.ts";
import { records } from "../wire/hello-support.ts";
import { cut, pieceSizes } from "./wire-messages.ts";

const CLIENTS: readonly ConnectionOptions[] = [
  { servername: "api.example.com", ALPNProtocols: ["h2", "http/1.1"] },
  { servername: "API.Example.com", ALPNProtocols: ["http/1.1"], maxVersion: "TLSv1.2" },
  { servername: "a.b.c.example.org", minVersion: "TLSv1.3" },
  {},
];
const EXPECTED: readonly ClientHello[] = [
  { serverName: "api.example.com", alpn: ["h2", "http/1.1"], ech: false, versions: [0x0304, 0x0303] },
  { serverName: "api.example.com", alpn: ["http/1.1"], ech: false, versions: [0x0303] },
  { serverName: "a.b.c.example.org", alpn: [], ech: false, versions: [0x0304] },
  { serverName: undefined, alpn: [], ech: false, versions: [0x0304, 0x0303] },
] as unknown as readonly ClientHello[];

let hellos: readonly Buffer[] = [];

before(async () => {
  hellos = await Promise.all(CLIENTS.map(firstFlight));
});

test("readClientHello() reads the hellos of OpenSSL", () => {
  for (const [index, hello] of hellos.entries()) {
    assert.deepEqual(readClientHello(hello, DEFAULT_LIMITS), { kind: "hello", hello: EXPECTED[index] });
  }
});

test("D14 readClientHello() comes to the same result for any records and segments", () => {
  fc.assert(
    fc.property(
      fc.nat({ max: CLIENTS.length - 1 }),
      fc.integer({ min: 1, max: 600 }),
      pieceSizes,
      (at, size, sizes) => {
        const bytes = records(Buffer.from(hellos[at]?.subarray(5) ?? []), size);
        assert.deepEqual(arriving(bytes, cut(bytes, sizes)), { kind: "hello", hello: EXPECTED[at] });
      },
    ),
  );
});

test("D22 readClientHello() throws nothing but a failure of the client on damaged hellos", () => {
  const edit = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(
      fc.nat({ max: CLIENTS.length - 1 }),
      fc.array(edit, { minLength: 1, maxLength: 4 }),
      (at, edits) => {
        const bytes = Buffer.from(hellos[at] ?? []);
        for (const [place, byte] of edits) {
          bytes[Math.floor(place * (bytes.length - 1))] = byte;
        }
        readsOrFails(bytes);
      },
    ),
    { numRuns: 1_000 },
  );
});

test("readClientHello() throws nothing but a failure of the client on random bytes", () => {
  const handshakeLike = fc
    .uint8Array({ maxLength: 100 })
    .map((bytes) => records(Buffer.from([1, 0, 0, ...bytes])));
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 100 }), handshakeLike), (bytes) =>
      readsOrFails(Buffer.from(bytes)),
    ),
    { numRuns: 1_000 },
  );
});

/** What is read once the last piece is there; until then it must be incomplete. */
function arriving(bytes: Buffer, pieces: readonly Buffer[]): unknown {
  let length = 0;
  for (const piece of pieces.slice(0, -1)) {
    length += piece.length;
    assert.equal(readClientHello(bytes.subarray(0, length), DEFAULT_LIMITS).kind, "incomplete");
  }
  return readClientHello(bytes, DEFAULT_LIMITS);
}

function readsOrFails(bytes: Buffer): void {
  try {
    readClientHello(bytes, DEFAULT_LIMITS);
  } catch (error) {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.code, "E_BAD_HELLO");
  }
}

/** The first bytes that a TLS client writes, into a stream that leads nowhere. */
function firstFlight(options: ConnectionOptions): Promise<Buffer> {
  return new Promise((resolve) => {
    const nowhere = new Duplex({
      read() {},
      write(bytes: Buffer, _encoding, done) {
        resolve(bytes);
        done();
      },
    });
    connect({ ...options, socket: nowhere }).on("error", () => {});
  });
}
