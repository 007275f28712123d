import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { sayLast } from "../../src/accept/last-word.ts";
import { around, createPair, listenTo, settle } from "../support/loopback.ts";

test("sayLast says it and ends", async (context) => {
  const { near, far } = await createPair(context);
  const peer = listenTo(far);
  sayLast(near, Buffer.from("bye"), around());
  assert.equal(await peer.ended, "end");
  assert.equal(peer.text, "bye");
});

test("sayLast resets a client that reads nothing once progress_timeout is over", async (context) => {
  const { near, far } = await createPair(context);
  far.pause();
  const surroundings = around();
  near.on("error", () => undefined).write(Buffer.alloc(20_000_000));
  const closed = once(near, "close");
  sayLast(near, Buffer.from("bye"), surroundings);
  surroundings.deadlines.pass(surroundings.limits.progress_timeout - 1);
  await settle();
  assert.equal(near.destroyed, false);
  surroundings.deadlines.pass(1);
  await closed;
});

test("sayLast says nothing where nobody is left", async (context) => {
  const { near } = await createPair(context);
  near.destroy();
  const surroundings = around();
  sayLast(near, Buffer.from("bye"), surroundings);
  surroundings.deadlines.pass(surroundings.limits.progress_timeout);
  assert.equal(near.destroyed, true);
});
