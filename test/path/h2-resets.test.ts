/** No end that nobody sent, and every reset with its code: HTTP/2 through the gate, frame by frame. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Gate } from "../support/gate.ts";
import { SECRET, startGate } from "../support/gate.ts";
import type { Frame, FramePeer } from "../support/h2-frames.ts";
import {
  block,
  createFrameOrigin,
  FLAG,
  frame,
  getBlock,
  openFrames,
  TYPE,
  uint32,
} from "../support/h2-frames.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet, PUBLIC_V4 } from "../support/private-internet.ts";

const HOST = "a.example.com";
const OK = block(":status", "200", "x-a", "b");

let internet: Internet;
let gate: Gate;
let origins: readonly FramePeer[];
/** What the origin does with a request's first frame. */
let behave: (stream: number, peer: FramePeer) => void = () => undefined;

before(async () => {
  internet = await createInternet();
  internet.dns.set(HOST, { A: [PUBLIC_V4] });
  origins = await createFrameOrigin(internet, HOST, onFrame);
  gate = await startGate(internet, {
    network: { allowlist: [{ domain: HOST, transform: { Authorization: SECRET } }] },
  });
});
after(() => internet.close());

function onFrame({ type, stream }: Frame, peer: FramePeer): void {
  if (type === TYPE.headers && !(peer.seen(stream).split(" ").length > 2)) behave(stream, peer);
}

function head(stream: number): Buffer {
  return frame(TYPE.headers, FLAG.endHeaders, stream, OK);
}

function data(stream: number, text: string, flags = 0): Buffer {
  return frame(TYPE.data, flags, stream, Buffer.from(text));
}

function reset(stream: number, code: number): Buffer {
  return frame(TYPE.reset, 0, stream, uint32(code));
}

function goaway(last: number, code: number): Buffer {
  return frame(TYPE.goaway, 0, 0, Buffer.concat([uint32(last), uint32(code)]));
}

/** What a client sees of the answer to its first request. */
async function answer(whole: boolean, done: RegExp): Promise<string> {
  const client = await openFrames(internet, gate, HOST);
  client.send(frame(TYPE.headers, FLAG.endHeaders | (whole ? FLAG.end : 0), 1, getBlock(HOST)));
  if (!whole) client.send(data(1, "part"));
  await client.until(`${done}`, () => done.test(client.seen(1)));
  const seen = client.seen(1);
  client.socket.destroy();
  return seen;
}

type Case = readonly [what: string, does: (stream: number, peer: FramePeer) => void, expected: string];

/** A request that is still open when its answer ended is given up by the gate, without an error. */
function casesOf(whole: boolean): readonly Case[] {
  const afterwards = whole ? "" : " reset\\(0\\)";
  return [
    [
      "ends its answer: the client sees the end",
      (stream, peer) => peer.send(head(stream), data(stream, "xy"), data(stream, "", FLAG.end)),
      `headers data\\[2\\] data\\[0 END\\]${afterwards}`,
    ],
    [
      "ends its answer and resets without an error: the client sees the end",
      (stream, peer) =>
        peer.send(head(stream), data(stream, "xy"), data(stream, "", FLAG.end), reset(stream, 0)),
      `headers data\\[2\\] data\\[0 END\\]${afterwards}`,
    ],
    [
      "sends trailers: they are the end",
      (stream, peer) =>
        peer.send(head(stream), data(stream, "xy"), frame(TYPE.headers, 5, stream, block("x-t", "v"))),
      `headers data\\[2\\] headers END${afterwards}`,
    ],
    [
      "resets without an error when its Content-Length is there: the client sees the end",
      (stream, peer) => {
        const sized = block(":status", "200", "content-length", "2");
        peer.send(frame(TYPE.headers, FLAG.endHeaders, stream, sized), data(stream, "xy"), reset(stream, 0));
      },
      `headers data\\[2\\] data\\[0 END\\]${afterwards}`,
    ],
    ...cutCases(),
  ];
}

function cutCases(): readonly Case[] {
  return [
    [
      "resets in mid-body without an error: INTERNAL_ERROR",
      (stream, peer) => peer.send(head(stream), data(stream, "xy"), reset(stream, 0)),
      "headers (data\\[2\\] )?reset\\(2\\)",
    ],
    [
      "resets in mid-body with a code: the same code",
      (stream, peer) => peer.send(head(stream), data(stream, "xy"), reset(stream, 11)),
      "headers (data\\[2\\] )?reset\\(11\\)",
    ],
    [
      "resets before its answer: the same code",
      (stream, peer) => peer.send(reset(stream, 11)),
      "reset\\(11\\)",
    ],
    [
      "closes the connection in mid-body: INTERNAL_ERROR",
      (stream, peer) => {
        peer.send(head(stream), data(stream, "xy"));
        peer.socket.end();
      },
      "headers (data\\[2\\] )?reset\\(2\\)",
    ],
    [
      "says GOAWAY in mid-body and closes: INTERNAL_ERROR",
      (stream, peer) => {
        peer.send(head(stream), data(stream, "xy"), goaway(stream, 0));
        peer.socket.end();
      },
      "headers (data\\[2\\] )?reset\\(2\\)",
    ],
  ];
}

for (const whole of [true, false]) {
  describe(`the origin, of a request that is ${whole ? "whole" : "still open"},`, () => {
    for (const [what, does, expected] of casesOf(whole)) {
      test(what, async () => {
        behave = does;
        const pattern = new RegExp(`^${expected}$`);
        assert.match(await answer(whole, pattern), pattern);
      });
    }
  });
}

describe("the client, in the middle of its request,", () => {
  for (const [what, does, expected] of [
    [
      "resets with a code: the same code",
      (c: FramePeer) => c.send(reset(1, 11)),
      "headers data[4] reset(11)",
    ],
    ["resets without an error: CANCEL", (c: FramePeer) => c.send(reset(1, 0)), "headers data[4] reset(8)"],
    ["closes its connection: CANCEL", (c: FramePeer) => void c.socket.destroy(), "headers data[4] reset(8)"],
    [
      "ends: the origin sees the end",
      (c: FramePeer) => c.send(data(1, "", FLAG.end)),
      "headers data[4] data[0 END]",
    ],
    [
      "sends trailers: they are the end",
      (c: FramePeer) => c.send(frame(TYPE.headers, 5, 1, block("x-t", "v"))),
      "headers data[4] headers END",
    ],
  ] as const) {
    test(what, async () => {
      let serving: FramePeer | undefined;
      let id = 0;
      const seen = () => serving?.seen(id) ?? "";
      behave = (stream, peer) => {
        peer.send(head(stream));
        [serving, id] = [peer, stream];
      };
      const client = await openFrames(internet, gate, HOST);
      client.send(frame(TYPE.headers, FLAG.endHeaders, 1, getBlock(HOST)), data(1, "part"));
      await client.until("the answer's head", () => client.seen(1) === "headers");
      const origin = origins.find((peer) => peer === serving);
      await origin?.until("the part", () => seen().endsWith("data[4]"));
      does(client);
      await origin?.until(expected, () => seen() === expected);
      assert.equal(seen(), expected);
      client.socket.destroy();
    });
  }
});

describe("a stream that the origin did not process", () => {
  for (const [what, refuse] of [
    ["is refused by a reset", (stream: number, peer: FramePeer) => peer.send(reset(stream, 7))],
    ["is after GOAWAY's last", (_stream: number, peer: FramePeer) => peer.send(goaway(0, 0))],
    [
      "is after the last of a GOAWAY with an error",
      (_stream: number, peer: FramePeer) => peer.send(goaway(0, 11)),
    ],
  ] as const) {
    test(`is sent again where it ${what} and has no body`, async () => {
      let tries = 0;
      behave = (stream, peer) => {
        tries += 1;
        if (tries === 1) refuse(stream, peer);
        else peer.send(frame(TYPE.headers, 5, stream, OK));
      };
      assert.equal(await answer(true, /END|reset/), "headers END");
      assert.equal(tries, 2);
    });
  }

  test("is not sent again where a body began to leave: the client is told that nothing was done", async () => {
    let tries = 0;
    behave = (stream, peer) => {
      tries += 1;
      peer.send(reset(stream, 7));
    };
    assert.equal(await answer(false, /END|reset/), "reset(7)");
    assert.equal(tries, 1);
  });

  test("is not sent again for ever", async () => {
    let tries = 0;
    behave = (stream, peer) => {
      tries += 1;
      peer.send(reset(stream, 7));
    };
    assert.equal(await answer(true, /END|reset/), "reset(7)");
    assert.equal(tries, 3);
  });

  test("is answered in words where the origin only ever closes the connection", async () => {
    behave = (_stream, peer) => void peer.socket.destroy();
    assert.match(await answer(true, /END|reset/), /^headers data\[\d+\] data\[0 END\]$/);
  });
});
