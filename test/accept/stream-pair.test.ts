import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createStreamPair } from "../../src/accept/stream-pair.ts";
import { eventually, listenTo, settle } from "../support/loopback.ts";

test("createStreamPair: what one end writes the other reads, both ways, to the end", async () => {
  const [one, other] = createStreamPair();
  const [first, second] = [listenTo(one), listenTo(other)];
  first.send("there");
  second.send("back");
  await Promise.all([second.until("there"), first.until("back")]);
  assert.ok(one.whole && other.whole);
  one.end();
  assert.equal(await second.ended, "end");
  assert.ok(!one.whole && !other.whole);
  second.send(" and more");
  await first.until("back and more");
  other.end();
  assert.equal(await first.ended, "end");
  await eventually(() => one.destroyed && other.destroyed);
});

test("StreamEnd: a reader that stops slows the writer down, until it reads on", async () => {
  const [one, other] = createStreamPair();
  const piece = Buffer.alloc(32_768);
  let written = 0;
  while (one.write(piece)) written += 1;
  await settle();
  assert.ok(one.writableNeedDrain);
  let read = 0;
  other.on("data", (bytes: Buffer) => {
    read += bytes.length;
  });
  await once(one, "drain");
  await eventually(() => read === (written + 1) * piece.length);
});

test("StreamEnd: an end that is destroyed before it ended takes the other one with it", async () => {
  const [one, other] = createStreamPair();
  const far = listenTo(other);
  one.write("part");
  await far.until("part");
  one.destroy();
  await once(other, "close");
  assert.equal(other.readableEnded, false);
});

test("StreamEnd: an end that was destroyed after it ended leaves what it sent, and swallows what still comes", async () => {
  const [one, other] = createStreamPair();
  one.end("whole");
  await once(one, "finish");
  one.destroy();
  const far = listenTo(other);
  assert.equal(await far.ended, "end");
  assert.equal(far.text, "whole");
  await new Promise((resolve) => other.write("late", resolve));
});

test("StreamEnd: a writer whose reader leaves is not kept waiting", async () => {
  const [one, other] = createStreamPair();
  one.on("error", () => undefined);
  while (one.write(Buffer.alloc(32_768)));
  const closed = once(one, "close");
  other.destroy();
  await closed;
});

test("StreamEnd: what a library asks of a socket does nothing here; alone it swallows what it is given", async () => {
  const [one] = createStreamPair();
  assert.equal(one.setTimeout().setNoDelay().setKeepAlive(), one);
});
