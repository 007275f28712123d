import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field } from "../../src/model/exchange.ts";
import { parseRequestHead } from "../../src/wire/request-head.ts";
import { validateSwitch, websocketRequest } from "../../src/wire/upgrade.ts";
import { field, headBytes, limits } from "./support.ts";

/** The example of RFC 6455 section 1.3. */
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const REQUEST: readonly string[] = [
  "GET /chat HTTP/1.1",
  "Host: a.example",
  "Connection: keep-alive, Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${KEY}`,
];

/** REQUEST with the line at `index` replaced by others. */
function asked(index?: number, ...instead: string[]): boolean {
  const lines = [...REQUEST];
  if (index !== undefined) {
    lines.splice(index, 1, ...instead);
  }
  const bytes = headBytes(...lines);
  return websocketRequest(parseRequestHead(bytes, bytes.length, limits));
}

test("I14 websocketRequest() knows a proper request", () => {
  assert.equal(asked(), true);
  assert.equal(asked(3, "upgrade: WebSocket"), true);
});

const NOT_ASKED: readonly (readonly [string, number, ...string[]])[] = [
  ["other method", 0, "POST /chat HTTP/1.1"],
  ["HTTP/1.0", 0, "GET /chat HTTP/1.0"],
  ["no nomination", 2],
  ["no Upgrade", 3],
  ["F09 h2c", 3, "Upgrade: h2c"],
  ["F09 h2c beside it", 3, "Upgrade: websocket, h2c"],
  ["F09 TLS/1.0", 3, "Upgrade: TLS/1.0"],
  ["two Upgrades", 3, "Upgrade: websocket", "Upgrade: websocket"],
  ["a body", 3, "Upgrade: websocket", "Content-Length: 0"],
  ["I15 no version", 4],
  ["I15 other version", 4, "Sec-WebSocket-Version: 777"],
  ["I15 two versions", 4, "Sec-WebSocket-Version: 13", "Sec-WebSocket-Version: 8"],
  ["I15 list of versions", 4, "Sec-WebSocket-Version: 13, 8"],
  ["no key", 5],
  ["two keys", 5, `Sec-WebSocket-Key: ${KEY}`, `Sec-WebSocket-Key: ${KEY}`],
  ["key too short", 5, "Sec-WebSocket-Key: dGhlIHNhbXBsZQ=="],
  ["key with spare bits", 5, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZR=="],
  ["key not base64", 5, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ*=="],
];

for (const [name, index, ...instead] of NOT_ASKED) {
  test(`websocketRequest() refuses: ${name}`, () => {
    assert.equal(asked(index, ...instead), false);
  });
}

const OFFER: readonly Field[] = [
  field("Sec-WebSocket-Key", KEY),
  field("Sec-WebSocket-Protocol", "chat, superchat"),
  field("sec-websocket-protocol", "v2"),
  field("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits, x-other"),
];
const SWITCH: readonly Field[] = [
  field("Upgrade", "websocket"),
  field("Connection", "Upgrade"),
  field("Sec-WebSocket-Accept", ACCEPT),
];

const SWITCHES: readonly (readonly [boolean, string, readonly Field[]])[] = [
  [true, "I14 a bare switch", SWITCH],
  [true, "I14 a protocol that was offered", [...SWITCH, field("Sec-WebSocket-Protocol", "superchat")]],
  [true, "I14 a protocol of the second line", [...SWITCH, field("Sec-WebSocket-Protocol", "v2")]],
  [
    true,
    "I14 an extension with other parameters",
    [...SWITCH, field("Sec-WebSocket-Extensions", "permessage-deflate ; server_no_context_takeover")],
  ],
  [false, "I16 no accept", SWITCH.slice(0, 2)],
  [false, "I16 wrong accept", [...SWITCH.slice(0, 2), field("Sec-WebSocket-Accept", KEY)]],
  [
    false,
    "I16 accept in other case",
    [...SWITCH.slice(0, 2), field("Sec-WebSocket-Accept", ACCEPT.toLowerCase())],
  ],
  [false, "I16 two accepts", [...SWITCH, field("Sec-WebSocket-Accept", ACCEPT)]],
  [false, "I04 no Upgrade", SWITCH.slice(1)],
  [false, "I04 another protocol", [field("Upgrade", "h2c"), ...SWITCH.slice(1)]],
  [false, "I04 two protocols", [field("Upgrade", "h2c"), ...SWITCH]],
  [false, "I04 no Connection", [...SWITCH.slice(0, 1), ...SWITCH.slice(2)]],
  [false, "a subprotocol that was not offered", [...SWITCH, field("Sec-WebSocket-Protocol", "evil")]],
  [false, "a subprotocol in other case", [...SWITCH, field("Sec-WebSocket-Protocol", "Chat")]],
  [false, "an empty subprotocol", [...SWITCH, field("Sec-WebSocket-Protocol", "")]],
  [
    false,
    "two subprotocols",
    [...SWITCH, field("Sec-WebSocket-Protocol", "chat"), field("Sec-WebSocket-Protocol", "v2")],
  ],
  [
    false,
    "an extension that was not offered",
    [...SWITCH, field("Sec-WebSocket-Extensions", "x-other, x-evil")],
  ],
];

for (const [valid, name, response] of SWITCHES) {
  test(`validateSwitch() ${valid ? "takes" : "refuses"}: ${name}`, () => {
    assert.equal(validateSwitch(OFFER, response), valid);
  });
}

test("validateSwitch() needs the key of the request, and its offers", () => {
  assert.equal(validateSwitch([], SWITCH), false);
  const bare = [field("Sec-WebSocket-Key", KEY)];
  assert.equal(validateSwitch(bare, SWITCH), true);
  assert.equal(validateSwitch(bare, [...SWITCH, field("Sec-WebSocket-Protocol", "")]), false);
  assert.equal(
    validateSwitch(bare, [...SWITCH, field("Sec-WebSocket-Extensions", "permessage-deflate")]),
    false,
  );
});

test("validateSwitch() takes a moment for offers of many blanks and many names", () => {
  const many = "x,".repeat(20_000);
  const offers = [
    field("Sec-WebSocket-Key", KEY),
    field("Sec-WebSocket-Protocol", `${" ".repeat(60_000)}v2`),
    field("Sec-WebSocket-Extensions", many),
  ];
  const before = process.cpuUsage();
  const answer = [...SWITCH, field("Sec-WebSocket-Protocol", "v2"), field("Sec-WebSocket-Extensions", many)];
  assert.equal(validateSwitch(offers, answer), true);
  assert.ok(process.cpuUsage(before).user < 1_000_000);
});
