/** The base-URL door and requests that break off: each arrival has one record, and no answer is lost for the next one. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { head } from "../support/ask.ts";
import { askReverse, dialReverse, OWN_HOST, startHolding } from "../support/base-url.ts";
import type { Gate } from "../support/gate.ts";
import { statusOf } from "../support/message-reader.ts";
import type { Connection, Origin } from "../support/origin.ts";
import { respond } from "../support/origin.ts";
import type { Internet } from "../support/private-internet.ts";
import { createInternet } from "../support/private-internet.ts";

const HOST = "api.example.com";
const CHUNKED = "Transfer-Encoding: chunked";

let internet: Internet;
let gate: Gate;
let origin: Origin;
let held: Connection[];

before(async () => {
  internet = await createInternet();
  ({ origin, gate, held } = await startHolding(internet, HOST));
});
after(() => internet.close());

describe("a base-URL request whose body is malformed", () => {
  test("a body that is malformed half-way is one record, of the exchange that it belongs to", async () => {
    const wire = await dialReverse(internet);
    wire.write(`${head(`POST /${HOST}/half HTTP/1.1`, OWN_HOST, CHUNKED)}5\r\nhello\r\n`);
    await origin.until("the first chunk", () => upstreamOf("/half")?.received.includes("hello") === true);
    const started = performance.now();
    assert.equal(statusOf(await wire.send("no size\r\n")), 400);
    await wire.closed();
    assert.ok(performance.now() - started < 1_500, "nothing is waited for");
    await origin.until("the release", () => upstreamOf("/half")?.closed === true);
    assert.doesNotMatch(upstreamOf("/half")?.received ?? "", /\r\n0\r\n/);
    assert.deepEqual(await recordsOf("/half"), [["/half", HOST, HOST, 400, "E_BAD_REQUEST"]]);
  });

  test("so is one whose very first bytes are wrong", async () => {
    const wire = await dialReverse(internet);
    const answer = await wire.send(`${head(`POST /${HOST}/first HTTP/1.1`, OWN_HOST, CHUNKED)}no size\r\n`);
    assert.equal(statusOf(answer), 400);
    await wire.closed();
    assert.deepEqual(await recordsOf("/first"), [["/first", HOST, HOST, 400, "E_BAD_REQUEST"]]);
  });

  test("one that breaks off behind an answer that has begun is cut, and one record", async () => {
    const wire = await dialReverse(internet);
    wire.write(`${head(`POST /${HOST}/held/late HTTP/1.1`, OWN_HOST, CHUNKED)}5\r\nhello\r\n`);
    await origin.until("the chunk", () => upstreamOf("/held/late")?.received.includes("hello") === true);
    upstreamOf("/held/late")?.socket.write(`${head("HTTP/1.1 200 OK", "Content-Length: 100")}begin`);
    await wire.until("the beginning", (text) => text.endsWith("begin"));
    wire.write("no size\r\n");
    assert.equal(await wire.closed(), "error");
    assert.deepEqual(await recordsOf("/held/late"), [["/held/late", HOST, HOST, 200, "E_BAD_REQUEST"]]);
  });
});

describe("a base-URL client that breaks off", () => {
  for (const [name, line, piece] of [
    ["length", "Content-Length: 10", "hello"],
    ["chunked", CHUNKED, "5\r\nhello\r\n"],
  ] as const) {
    test(`a body (${name}) whose client closes its side in the middle is one record`, async () => {
      const path = `/closed-${name}`;
      const wire = await dialReverse(internet);
      wire.write(head(`POST /${HOST}${path} HTTP/1.1`, OWN_HOST, line) + piece);
      await origin.until("the piece", () => upstreamOf(path)?.received.includes("hello") === true);
      wire.end();
      await wire.closed();
      await origin.until("the release", () => upstreamOf(path)?.closed === true);
      const [one, ...more] = await recordsOf(path);
      assert.deepEqual([one?.[0], one?.[4], more], [path, "E_BAD_REQUEST", []]);
    });
  }

  test("nonsense behind a whole request waits for that one's answer, and is a record of its own", async () => {
    const before = held.length;
    const wire = await dialReverse(internet);
    wire.write(`${head(`GET /${HOST}/held/whole HTTP/1.1`, OWN_HOST)}no request at all\r\n\r\n`);
    await origin.until("the request", () => held.length === before + 1);
    held.at(-1)?.socket.write(respond("whole"));
    const first = await wire.response();
    assert.deepEqual([statusOf(first), first.body], [200, "whole"]);
    assert.equal(statusOf(await wire.response()), 400);
    await wire.closed();
    assert.deepEqual(await recordsOf("/held/whole"), [
      ["/held/whole", HOST, HOST, 200, null],
      [null, null, null, 400, "E_BAD_REQUEST"],
    ]);
  });
});

/** All records of one path, once a later exchange has its own. */
async function recordsOf(path: string) {
  const next = `/after-${path.split("/").at(-1)}`;
  assert.equal(statusOf(await askReverse(internet, `GET /${HOST}${next}`)), 200);
  await gate.record({ path: next });
  return gate.records
    .filter((one) => one["path"] === path || one["path"] === null)
    .map((one) => [one["path"], one["host"], one["rule"], one["status"], one["failure"]]);
}

function upstreamOf(path: string): Connection | undefined {
  return origin.connections.find(({ received }) => received.includes(`${path} `));
}
