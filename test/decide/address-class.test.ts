import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpAddress } from "../../src/base/ip.ts";
import {
  type AddressClass,
  classifyAddress,
  isNeverOpen,
  neverOpens,
} from "../../src/decide/address-class.ts";
import { known, range } from "./build.ts";

const CLASSES: readonly (readonly [string, AddressClass, readonly string[]])[] = [
  ["B02 loopback", "loopback", ["127.0.0.1", "127.255.255.255", "::1"]],
  ["B05 unspecified", "unspecified", ["0.0.0.0", "0.1.2.3", "0.255.255.255", "::"]],
  [
    "B06 link-local",
    "link-local",
    ["169.254.0.0", "169.254.255.255", "169.254.169.253", "fe80::1", "febf::1"],
  ],
  [
    "B06 instance metadata",
    "metadata",
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42"],
  ],
  ["B07 metadata elsewhere", "metadata", ["100.100.100.200", "168.63.129.16", "192.0.0.192", "169.254.0.23"]],
  [
    "B07 metadata over IPv6",
    "metadata",
    [
      "fd00:ec2::254",
      "fd00:ec2::23",
      "fd20:ce::254",
      "fd00:c1::a9fe:a9fe",
      "fd00:42::42",
      "fd00:a9fe:a9fe::1",
      "fe80::a9fe:a9fe",
    ],
  ],
  ["B08 mapped loopback", "loopback", ["::ffff:127.0.0.1", "::ffff:7f00:1"]],
  ["B08 mapped metadata", "metadata", ["0:0:0:0:0:ffff:a9fe:a9fe"]],
  ["B09 IPv4-compatible", "embeds-ipv4", ["::127.0.0.1", "::8.8.8.8", "::2"]],
  ["B09 IPv4-translated", "embeds-ipv4", ["::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"]],
  [
    "B10 NAT64",
    "embeds-ipv4",
    ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "64:ff9b:1:ffff::"],
  ],
  ["B11 6to4 and Teredo", "embeds-ipv4", ["2002:7f00:1::", "2002:808:808::1", "2001:0:1::", "2001::"]],
  ["B12 private", "private", ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.1"]],
  ["B12 private over IPv6", "private", ["fc00::1", "fd00::1", "fdff:ffff::", "fec0::1", "feff::1"]],
  ["B12 shared", "shared", ["100.64.0.0", "100.127.255.255"]],
  [
    "B12 protocol assignments",
    "reserved",
    ["192.0.0.0", "192.0.0.8", "192.0.0.170", "192.0.0.255", "192.88.99.1"],
  ],
  ["B12 benchmarking", "benchmarking", ["198.18.0.0", "198.19.255.255", "2001:2::1"]],
  [
    "B12 documentation",
    "documentation",
    ["192.0.2.1", "198.51.100.1", "203.0.113.255", "2001:db8::1", "3fff::1", "3fff:fff::1"],
  ],
  ["B12 reserved", "reserved", ["240.0.0.0", "255.255.255.254"]],
  ["B12 broadcast", "broadcast", ["255.255.255.255"]],
  ["B12 multicast", "multicast", ["224.0.0.1", "239.255.255.255", "ff00::1", "ff02::fb"]],
  [
    "B12 reserved over IPv6",
    "reserved",
    [
      "100::1",
      "100:0:0:1::1",
      "2001:1::1",
      "2001:1::3",
      "2001:10::1",
      "2001:20::1",
      "2001:30::1",
      "2001:1ff::",
      "5f00::1",
    ],
  ],
  [
    "IPv6 that nobody was given",
    "reserved",
    ["1::", "1fff::", "4000::1", "8000::1", "fe00::1", "64:ff9b:2::1", "::1:0:0"],
  ],
  [
    "B13 just beside a block",
    "public",
    [
      "100.63.255.254",
      "100.128.0.1",
      "172.15.255.255",
      "172.32.0.1",
      "169.253.255.255",
      "11.0.0.0",
      "9.255.255.255",
    ],
  ],
  [
    "B13 just beside other blocks",
    "public",
    [
      "1.0.0.0",
      "126.255.255.255",
      "128.0.0.0",
      "192.0.1.0",
      "192.0.3.0",
      "198.17.255.255",
      "198.20.0.0",
      "223.255.255.255",
    ],
  ],
  [
    "public",
    "public",
    ["93.184.216.34", "8.8.8.8", "168.63.129.17", "192.31.196.1", "192.52.193.1", "192.175.48.1"],
  ],
  [
    "public over IPv6",
    "public",
    [
      "2606:4700::1111",
      "2001:200::1",
      "2001:3::1",
      "2001:4:112::1",
      "2001:db9::",
      "2003::1",
      "2620:4f:8000::1",
      "2a00::1",
      "3ffe:1000::",
    ],
  ],
];

for (const [kind, expected, texts] of CLASSES) {
  test(`classifyAddress: ${kind} is ${expected}`, () => {
    for (const text of texts)
      assert.equal(classifyAddress(known(parseIpAddress(text), text)), expected, text);
  });
}

test("isNeverOpen: what no configuration can open", () => {
  const never: readonly AddressClass[] = [
    "loopback",
    "unspecified",
    "link-local",
    "metadata",
    "multicast",
    "broadcast",
    "embeds-ipv4",
  ];
  const may: readonly AddressClass[] = [
    "public",
    "private",
    "shared",
    "documentation",
    "benchmarking",
    "reserved",
  ];
  assert.deepEqual(never.filter(isNeverOpen), never);
  assert.deepEqual(may.filter(isNeverOpen), []);
});

test("neverOpens: a range that opens nothing, or reaches loopback, is named", () => {
  for (const [text, expected] of [
    ["127.0.0.0/8", "loopback"],
    ["127.0.0.1", "loopback"],
    ["126.0.0.0/7", "loopback"],
    ["0.0.0.0/0", "loopback"],
    ["::1", "loopback"],
    ["::/0", "loopback"],
    ["169.254.0.0/16", "link-local"],
    ["169.254.169.254", "metadata"],
    ["100.100.100.200", "metadata"],
    ["fd00:ec2::/64", "metadata"],
    ["224.0.0.0/8", "multicast"],
    ["64:ff9b::/96", "embeds-ipv4"],
    ["2002:a00::/24", "embeds-ipv4"],
    ["10.0.0.0/8", undefined],
    ["10.20.0.0/16", undefined],
    ["100.64.0.0/10", undefined],
    ["fd00::/8", undefined],
    ["93.184.216.34", undefined],
    ["160.0.0.0/3", undefined],
  ] as const) {
    assert.equal(neverOpens(range(text)), expected, text);
  }
});
