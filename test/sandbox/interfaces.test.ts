/** Interfaces that lead out of a namespace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWaysOut } from "../../src/sandbox/interfaces.ts";

const LO =
  "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT\\    link/loopback";

test("parseWaysOut: loopback leads nowhere, and a tunnel that the kernel puts everywhere only when it is up", () => {
  const down = "2: tunl0@NONE: <NOARP> mtu 1480 qdisc noop state DOWN\\    link/ipip 0.0.0.0";
  assert.deepEqual(parseWaysOut(`${LO}\n${down}\n`), []);
  assert.deepEqual(parseWaysOut(down.replace("<NOARP>", "<NOARP,UP,LOWER_UP>")), ["tunl0"]);
});

test("parseWaysOut: all others do, up or down", () => {
  const lines = [
    LO,
    "5: eth0@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\\    link/ether",
    "7: wg.0: <POINTOPOINT,NOARP> mtu 1420 qdisc noop state DOWN\\    link/none",
  ];
  assert.deepEqual(parseWaysOut(`${lines.join("\n")}\n`), ["eth0", "wg.0"]);
  assert.deepEqual(parseWaysOut(""), []);
});
