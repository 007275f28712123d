import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import {
  formatIp,
  formatRange,
  ipFromOctets,
  parseIpAddress,
  parseRange,
  rangeContains,
  rangesOverlap,
  sameAddress,
} from "../../src/base/ip.ts";
import type { IpAddress } from "../../src/model/exchange.ts";
import type { AddressRange } from "../../src/model/policy.ts";

const CANONICAL: readonly (readonly [string, string])[] = [
  ["93.184.216.34", "93.184.216.34"],
  ["0.0.0.0", "0.0.0.0"],
  ["::", "::"],
  ["::1", "::1"],
  ["1::", "1::"],
  ["0:0:0:0:0:0:0:1", "::1"],
  ["2001:DB8::A", "2001:db8::a"],
  ["2001:0db8:0000:0000:0000:0000:0000:000a", "2001:db8::a"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
  ["1:0:2:0:0:3:0:0", "1:0:2::3:0:0"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["64:ff9b::127.0.0.1", "64:ff9b::7f00:1"],
  ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
  ["::ffff:0:127.0.0.1", "::ffff:0:7f00:1"],
];

for (const [text, expected] of CANONICAL) {
  test(`parseIpAddress: ${text} is ${expected}`, () => {
    assert.equal(parseIpAddress(text)?.text, expected);
  });
}

test("parseIpAddress: B08 the mapped form is the IPv4 address", () => {
  for (const [text, expected] of [
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["::ffff:7f00:1", "127.0.0.1"],
    ["0:0:0:0:0:ffff:a9fe:a9fe", "169.254.169.254"],
    ["::FFFF:0:0", "0.0.0.0"],
  ] as const) {
    const address = parseIpAddress(text);
    assert.deepEqual([address?.family, address?.text, address?.octets.length], [4, expected, 4]);
  }
});

const REFUSED: readonly (readonly [string, readonly string[]])[] = [
  [
    "B02 short, octal and hex forms",
    ["127.1", "0177.0.0.1", "0x7f.1", "2130706433", "0", "1.2.3", "1.2.3.4.5"],
  ],
  ["B04 leading zeros", ["0127.0.0.1", "08.0.0.1", "1.2.3.04", "00.0.0.0"]],
  ["B14 zone ids", ["fe80::1%eth0", "fe80::1%25eth0", "::ffff:1.2.3.4%x.example.org"]],
  ["numbers out of range", ["256.1.1.1", "1.2.3.999", "12345::", "::1.2.3.256"]],
  ["brackets, ports, blanks", ["[::1]", "1.2.3.4:80", " ::1", "::1 ", "1.2.3.4\n", "::1\n", "1.2.3.4/8"]],
  ["gaps that are none", [":::", "1:::2", "1::2::3", "1::2:3:4:5:6:7:8", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:"]],
  ["too few or too many groups", ["1:2", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:1.2.3.4", ":"]],
  [
    "a dotted part that is no tail",
    ["1.2.3.4::", "::1.2.3.4:5", "::1.2.3", "1.2.3.4:1:2:3:4:5:6", "::01.2.3.4"],
  ],
  ["other text", ["", ".", "a.b.c.d", "::g", "-1.2.3.4", "1..2.3", "::\0", "١.2.3.4", "1".repeat(100_000)]],
];

for (const [kind, texts] of REFUSED) {
  test(`parseIpAddress: ${kind} are no address`, () => {
    for (const text of texts)
      assert.equal(parseIpAddress(text), undefined, JSON.stringify(text.slice(0, 60)));
  });
}

test("parseIpAddress: reads what Node.js reads, zone ids left out", () => {
  const texts = fc.string({ unit: fc.constantFrom(..."0123456789abcdefF:.%"), maxLength: 24 });
  fc.assert(
    fc.property(texts, (text) => {
      if (parseIpAddress(text) !== undefined) assert.notEqual(isIP(text), 0, text);
      else if (isIP(text) !== 0) assert.match(text, /%/);
    }),
    { numRuns: 5_000 },
  );
});

test("formatIp: canonical text round-trips, and the URL standard writes the same", () => {
  const zeroish = fc.oneof(fc.constant(0), fc.nat(255));
  const octets = fc.oneof(
    fc.array(zeroish, { minLength: 4, maxLength: 4 }),
    fc.array(zeroish, { minLength: 16, maxLength: 16 }),
  );
  fc.assert(
    fc.property(octets, (bytes) => {
      const address = ipFromOctets(Uint8Array.from(bytes));
      assert.ok(address !== undefined);
      assert.deepEqual(parseIpAddress(address.text), address);
      assert.equal(formatIp(address.octets), address.text);
      const url = new URL(address.family === 4 ? `http://${address.text}` : `http://[${address.text}]`);
      assert.equal(url.hostname.replace(/^\[|\]$/g, ""), address.text);
    }),
    { numRuns: 2_000 },
  );
});

test("formatIp: a view into a larger buffer is read at its own place", () => {
  const buffer = Buffer.from([9, 9, ...Array.from({ length: 15 }, () => 0), 1]);
  assert.equal(formatIp(buffer.subarray(2)), "::1");
});

test("ipFromOctets: copies its bytes, unmaps, and refuses other lengths", () => {
  const bytes = Uint8Array.of(10, 0, 0, 1);
  const address = ipFromOctets(bytes);
  bytes[0] = 127;
  assert.deepEqual([address?.text, address?.octets[0]], ["10.0.0.1", 10]);
  const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1);
  assert.equal(ipFromOctets(mapped)?.text, "127.0.0.1");
  for (const length of [0, 3, 5, 15, 17]) assert.equal(ipFromOctets(new Uint8Array(length)), undefined);
});

test("sameAddress: compares what is meant, not what is written", () => {
  assert.equal(sameAddress(ip("::ffff:1.2.3.4"), ip("1.2.3.4")), true);
  assert.equal(sameAddress(ip("::1"), ip("0:0::1")), true);
  assert.equal(sameAddress(ip("::1"), ip("::2")), false);
});

test("parseRange: canonical ranges, and a bare address for itself", () => {
  for (const [text, expected] of [
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["1.2.3.4", "1.2.3.4/32"],
    ["1.2.3.4/31", "1.2.3.4/31"],
    ["::/0", "::/0"],
    ["FD00::/8", "fd00::/8"],
    ["fc00::/7", "fc00::/7"],
    ["::1", "::1/128"],
    ["::ffff:10.0.0.1", "10.0.0.1/32"],
  ] as const) {
    assert.equal(formatRange(range(text)), expected);
  }
});

test("parseRange: host bits, odd lengths and mapped lengths are no range", () => {
  const hostBits = ["10.0.0.1/8", "1.2.3.5/31", "ff00::/7", "::1/127", "128.0.0.0/0"];
  const lengths = [
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/08",
    "10.0.0.0/",
    "10.0.0.0/+8",
    "10.0.0.0/8/8",
    "::/1000",
  ];
  for (const text of [...hostBits, ...lengths, "::ffff:10.0.0.0/104", "::ffff:10.0.0.0/8", "x/8", "/8", ""]) {
    assert.equal(parseRange(text), undefined, text);
  }
});

test("rangeContains: B13 stops at the bit, not at the byte", () => {
  const shared = range("100.64.0.0/10");
  const inside = ["100.64.0.0", "100.127.255.255"].map((text) => rangeContains(shared, ip(text)));
  const beside = ["100.63.255.255", "100.128.0.0"].map((text) => rangeContains(shared, ip(text)));
  assert.deepEqual(
    [inside, beside],
    [
      [true, true],
      [false, false],
    ],
  );
  assert.equal(rangeContains(range("::/0"), ip("1.2.3.4")), false);
  assert.equal(rangeContains(range("0.0.0.0/0"), ip("::1")), false);
});

test("rangeContains: agrees with numbers", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(32), (base, other, bits) => {
      const size = 2 ** (32 - bits);
      const start = Math.floor(base / size) * size;
      const within = { base: fromNumber(start), prefixBits: bits };
      assert.equal(rangeContains(within, fromNumber(other)), other >= start && other < start + size);
    }),
  );
});

test("rangesOverlap: exactly where one holds the other's base", () => {
  const texts = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "10.1.2.3",
    "11.0.0.0/8",
    "0.0.0.0/0",
    "::/0",
    "fd00::/8",
    "fd12::/16",
  ];
  for (const a of texts.map(range)) {
    for (const b of texts.map(range)) {
      const expected = rangeContains(a, b.base) || rangeContains(b, a.base);
      assert.equal(rangesOverlap(a, b), expected, `${formatRange(a)} ${formatRange(b)}`);
    }
  }
});

function fromNumber(value: number): IpAddress {
  const octets = new Uint8Array(4);
  new DataView(octets.buffer).setUint32(0, value);
  const address = ipFromOctets(octets);
  assert.ok(address !== undefined);
  return address;
}

function ip(text: string): IpAddress {
  const address = parseIpAddress(text);
  assert.ok(address !== undefined, text);
  return address;
}

function range(text: string): AddressRange {
  const parsed = parseRange(text);
  assert.ok(parsed !== undefined, text);
  return parsed;
}
