import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClientHello, readClientHello } from "../../src/wire/client-hello.ts";
import {
  alpn,
  extension,
  handshake,
  hello,
  helloMessage,
  nameEntry,
  records,
  sni,
  uint16,
  vector8,
  vector16,
  versions,
} from "./hello-support.ts";
import { failure, limits } from "./support.ts";

function read(bytes: Buffer): ClientHello {
  const outcome = readClientHello(bytes, limits);
  assert.ok(outcome.kind === "hello", outcome.kind);
  return outcome.hello;
}

function named(...extensions: Buffer[]): string | undefined {
  return read(hello({ extensions })).serverName;
}

test("readClientHello() gives name, protocols, versions and ECH", () => {
  const extensions = [sni("api.example.com"), alpn("h2", "http/1.1"), versions(0x1a1a, 0x0304, 0x0303)];
  assert.deepEqual(read(hello({ extensions })), {
    serverName: "api.example.com",
    alpn: ["h2", "http/1.1"],
    ech: false,
    versions: [0x1a1a, 0x0304, 0x0303],
  });
});

test("readClientHello() reads a hello with no extension, or none of those it looks for", () => {
  const bare = { serverName: undefined, alpn: [], ech: false, versions: [0x0301] };
  assert.deepEqual(read(hello({ legacyVersion: 0x0301, extensions: undefined })), bare);
  assert.deepEqual(read(hello({ legacyVersion: 0x0301, extensions: [] })), bare);
  assert.deepEqual(
    read(hello({ legacyVersion: 0x0301, extensions: [extension(10, Buffer.alloc(4))] })),
    bare,
  );
});

test("D13 readClientHello() makes the name canonical", () => {
  assert.equal(named(sni("API.Example.COM")), "api.example.com");
  assert.equal(named(sni("api.example.com.")), "api.example.com");
  assert.equal(named(sni("_dmarc.example.org")), "_dmarc.example.org");
});

const BAD_NAMES: readonly (readonly [string, string])[] = [
  ["IPv4", "1.2.3.4"],
  ["short IPv4", "127.1"],
  ["IPv6", "::1"],
  ["IPv6 in brackets", "[::1]"],
  ["empty", ""],
  ["a dot", "."],
  ["two dots", "a..example"],
  ["A20 wildcard", "*.example.org"],
  ["A14 NUL", "evil.example\0.good.example"],
  ["A13 UTF-8", "b\xc3\xbccher.de"],
  ["line break", "a\nb"],
  ["ANSI escape", "\x1b[2Ja.example"],
  ["markup", '"><script>'],
  ["port", "a.example:443"],
  ["255 bytes", "a".repeat(255)],
  ["64 KiB", "a.".repeat(8_000)],
];

for (const [name, text] of BAD_NAMES) {
  test(`D13 readClientHello() refuses a server name: ${name}`, () => {
    assert.throws(() => named(sni(text)), failure("E_BAD_HELLO"));
  });
}

const BAD_EXTENSIONS: readonly (readonly [string, ...Buffer[]])[] = [
  ["D13 two names", sni("a.example", "b.example")],
  ["D13 two equal names", sni("a.example", "a.example")],
  ["D13 no name in the list", sni()],
  ["D13 name of another type", extension(0, vector16(nameEntry(1, "a.example")))],
  [
    "D13 a second name of another type",
    extension(0, vector16(Buffer.concat([nameEntry(0, "a.example"), nameEntry(1, "b")]))),
  ],
  ["D13 empty server_name extension", extension(0, Buffer.alloc(0))],
  [
    "bytes after the name list",
    extension(0, Buffer.concat([vector16(nameEntry(0, "a.example")), Buffer.alloc(1)])),
  ],
  ["name list cut", extension(0, uint16(50))],
  ["two server_name extensions", sni("a.example"), sni("b.example")],
  [
    "two equal extensions of a kind nobody knows",
    extension(0x4a4a, Buffer.alloc(0)),
    extension(0x4a4a, Buffer.alloc(0)),
  ],
  ["empty ALPN list", alpn()],
  ["empty ALPN name", alpn("h2", "")],
  [
    "bytes after the ALPN list",
    extension(16, Buffer.concat([vector16(vector8(Buffer.from("h2"))), Buffer.alloc(1)])),
  ],
  ["ALPN cut", extension(16, vector16(Buffer.from([5, 1])))],
  ["no version", versions()],
  ["half a version", extension(43, vector8(Buffer.from([3])))],
  ["bytes after the versions", extension(43, Buffer.concat([vector8(uint16(0x0304)), Buffer.alloc(1)]))],
  ["extension cut", Buffer.from([0, 10, 0, 9, 1])],
  ["extension header cut", Buffer.from([0, 10, 0])],
];

for (const [name, ...extensions] of BAD_EXTENSIONS) {
  test(`readClientHello() refuses: ${name}`, () => {
    assert.throws(() => read(hello({ extensions })), failure("E_BAD_HELLO"));
  });
}

test("readClientHello() refuses a malformed body", () => {
  const bad = [
    hello({ legacyVersion: 0x0203 }),
    hello({ sessionId: Buffer.alloc(33) }),
    hello({ suites: Buffer.alloc(0) }),
    hello({ suites: Buffer.alloc(3) }),
    hello({ compressions: Buffer.alloc(0) }),
    hello({ rest: Buffer.alloc(1) }),
    hello({ extensions: undefined, rest: Buffer.from([0]) }),
    records(handshake(1, Buffer.alloc(0))),
    records(handshake(1, Buffer.alloc(33))),
    records(handshake(2, helloMessage().subarray(4))),
  ];
  for (const bytes of bad) {
    assert.throws(() => read(bytes), failure("E_BAD_HELLO"));
  }
});

test("D18 D19 readClientHello() reports ECH, its draft and GREASE", () => {
  assert.equal(read(hello({ extensions: [extension(0xfe0d, Buffer.alloc(9))] })).ech, true);
  assert.equal(read(hello({ extensions: [extension(0xffce, Buffer.alloc(9))] })).ech, true);
  assert.equal(read(hello({ extensions: [extension(0x0a0a, Buffer.alloc(9))] })).ech, false);
});

test("D16 readClientHello() finds the name behind a large key share", () => {
  assert.equal(named(extension(51, Buffer.alloc(1_400)), sni("a.example")), "a.example");
  assert.equal(named(extension(51, Buffer.alloc(40_000)), sni("a.example")), "a.example");
});

test("D14 readClientHello() waits at every cut, and fragments change nothing", () => {
  const message = helloMessage({ extensions: [alpn("h2"), sni("a.example")] });
  for (const size of [1, 2, 3, 5, 64, 16_384]) {
    const bytes = records(message, size);
    for (let length = 0; length < bytes.length; length += 1) {
      assert.deepEqual(readClientHello(bytes.subarray(0, length), limits), { kind: "incomplete" });
    }
    assert.equal(read(bytes).serverName, "a.example");
  }
});

test("D20 D21 readClientHello() tells what is no TLS by its first bytes", () => {
  for (const text of [
    "GET / HTTP/1.1",
    "SSH-2.0-x",
    "EHLO",
    "\x80\x2e\x01\x03\x01",
    "\x05\x01\x00",
    "\x16\x02\x00",
    "\x13",
    "\x19",
  ]) {
    assert.deepEqual(readClientHello(Buffer.from(text, "latin1"), limits), { kind: "not-tls" });
  }
});
