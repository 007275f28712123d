import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Failure } from "../../src/model/failure.ts";
import {
  METHOD,
  REPLY,
  readCredentials,
  readGreeting,
  readSocksRequest,
  type SocksRequest,
  socksReply,
} from "../../src/wire/socks5.ts";

describe("readGreeting", () => {
  test("reads the offered methods and leaves what follows", () => {
    const read = readGreeting(Buffer.from("05020002ff", "hex"));
    assert.deepEqual(read, { value: [METHOD.none, METHOD.password], length: 4 });
  });

  test("waits for more bytes", () => {
    for (const hex of ["", "05", "0502", "050200"])
      assert.equal(readGreeting(Buffer.from(hex, "hex")), undefined);
  });

  test("takes no methods for what they are", () => {
    assert.deepEqual(readGreeting(Buffer.from("0500", "hex")), { value: [], length: 2 });
  });

  test("refuses another version", () => {
    assert.throws(() => readGreeting(Buffer.from("0401", "hex")), isBadRequest);
  });
});

describe("readCredentials", () => {
  test("reads name and password, empty ones too", () => {
    const bytes = Buffer.concat([Buffer.of(1, 3), Buffer.from("box"), Buffer.of(2), Buffer.from("pwXX")]);
    assert.deepEqual(readCredentials(bytes), { value: { name: "box", password: "pw" }, length: 8 });
    assert.deepEqual(readCredentials(Buffer.of(1, 0, 0)), { value: { name: "", password: "" }, length: 3 });
  });

  test("waits for more bytes at every cut", () => {
    const bytes = Buffer.concat([Buffer.of(1, 3), Buffer.from("box"), Buffer.of(2), Buffer.from("pw")]);
    for (let cut = 0; cut < bytes.length; cut += 1)
      assert.equal(readCredentials(bytes.subarray(0, cut)), undefined);
  });

  test("refuses another version of the step", () => {
    assert.throws(() => readCredentials(Buffer.of(5, 0)), isBadRequest);
  });
});

describe("readSocksRequest", () => {
  const CASES: readonly (readonly [
    says: string,
    bytes: Buffer,
    command: SocksRequest["command"],
    target: string,
  ])[] = [
    ["a name", request(1, named("API.Example.com."), 443), "connect", "name api.example.com 443"],
    ["an IPv4 address", request(1, Buffer.of(1, 11, 0, 0, 10), 80), "connect", "address 11.0.0.10 80"],
    [
      "an IPv6 address",
      request(1, Buffer.from("0420014860000000000000000000000008", "hex"), 443),
      "connect",
      "address 2001:4860::8 443",
    ],
    [
      "an IPv4-mapped address (B08)",
      request(1, Buffer.from("0400000000000000000000ffff7f000001", "hex"), 443),
      "connect",
      "address 127.0.0.1 443",
    ],
    ["a literal in a name's place", request(1, named("127.0.0.1"), 443), "connect", "address 127.0.0.1 443"],
    ["BIND", request(2, named("a.example"), 0), "bind", "name a.example 0"],
    ["UDP ASSOCIATE", request(3, Buffer.of(1, 0, 0, 0, 0), 0), "associate", "address 0.0.0.0 0"],
    ["a command of its own", request(9, named("a.example"), 1), "other", "name a.example 1"],
  ];
  for (const [says, bytes, command, target] of CASES) {
    test(`reads ${says}`, () => {
      const read = readSocksRequest(Buffer.concat([bytes, Buffer.from("early")]));
      assert.equal(read?.length, bytes.length);
      assert.equal(read?.value.command, command);
      assert.equal(textOf(read?.value), target);
    });

    test(`waits for the rest of ${says}`, () => {
      for (let cut = 0; cut < bytes.length; cut += 1) {
        assert.equal(readSocksRequest(bytes.subarray(0, cut)), undefined);
      }
    });
  }
});

describe("readSocksRequest: what it refuses", () => {
  test("has no authority for an address type that nobody knows", () => {
    const read = readSocksRequest(Buffer.of(5, 1, 0, 9, 0));
    assert.deepEqual(read?.value, { command: "connect", authority: undefined });
  });

  test("refuses names that a resolver may read otherwise (A14, B02)", () => {
    const names = [
      "evil.test\0.example.com",
      "127.1",
      "0x7f.1",
      "2130706433",
      "a..b",
      "",
      "a b",
      "a%00b",
      "bü.de",
      "*.a",
    ];
    for (const name of names) {
      assert.throws(() => readSocksRequest(request(1, named(name), 443)), isBadRequest, name);
    }
  });

  test("refuses port 0 and another version", () => {
    assert.throws(() => readSocksRequest(request(1, named("a.example"), 0)), isBadRequest);
    assert.throws(() => readSocksRequest(Buffer.of(4, 1, 0, 1, 0)), isBadRequest);
  });
});

test("socksReply: tells a code and no address", () => {
  assert.equal(socksReply(REPLY.notAllowed).toString("hex"), "05020001000000000000");
});

test("the readers: no bytes make them throw anything but E_BAD_REQUEST", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
      for (const read of [readGreeting, readCredentials, readSocksRequest]) {
        try {
          const result = read(Buffer.from(octets));
          if (result !== undefined) assert.ok(result.length <= octets.length);
        } catch (error) {
          assert.ok(isBadRequest(error));
        }
      }
    }),
  );
});

function request(command: number, address: Buffer, port: number): Buffer {
  return Buffer.concat([Buffer.of(5, command, 0), address, Buffer.of(port >> 8, port & 0xff)]);
}

function named(name: string): Buffer {
  const octets = Buffer.from(name, "latin1");
  return Buffer.concat([Buffer.of(3, octets.length), octets]);
}

function textOf(value: SocksRequest | undefined): string | undefined {
  if (value?.authority === undefined) return undefined;
  const { host, port } = value.authority;
  return `${host.kind} ${host.kind === "name" ? host.name : host.address.text} ${port}`;
}

function isBadRequest(error: unknown): boolean {
  return error instanceof Failure && error.code === "E_BAD_REQUEST";
}
