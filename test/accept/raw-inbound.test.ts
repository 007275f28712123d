/** A raw connection in the place of a CONNECT: taken over as it is, or broken off. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONNECTED } from "../../src/accept/answer.ts";
import { RawInbound } from "../../src/accept/raw-inbound.ts";
import { createPair, listenTo } from "../support/loopback.ts";

test("RawInbound: what was read comes first, and nothing is said", async (context) => {
  const { near, far } = await createPair(context);
  const peer = listenTo(far);
  const inbound = new RawInbound(near, Buffer.from("early"));
  let lost = 0;
  inbound.whenLost(() => {
    lost += 1;
  });
  assert.equal(inbound.taken, false);
  const raw = inbound.takeOver(CONNECTED);
  assert.deepEqual([raw.socket, raw.early.toString(), inbound.taken], [near, "early", true]);
  near.end("later");
  assert.equal(await peer.until("later"), "later");
  far.destroy();
  near.destroy();
  await new Promise((resolve) => near.once("close", resolve));
  assert.equal(lost, 0);
});

test("RawInbound: a client that goes away is told of", async (context) => {
  const { near } = await createPair(context);
  const inbound = new RawInbound(near, Buffer.alloc(0));
  const lost = new Promise<void>((resolve) => inbound.whenLost(resolve));
  near.destroy();
  await lost;
});

test("RawInbound: an answer in words cannot be given, so it is a reset", async (context) => {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined);
  const peer = listenTo(far);
  const inbound = new RawInbound(near, Buffer.alloc(0));
  inbound.start({} as never);
  inbound.closeAfter();
  inbound.pause();
  inbound.resume();
  inbound.inform(CONNECTED);
  assert.equal(inbound.write(Buffer.from("x")), true);
  inbound.end();
  inbound.respond(CONNECTED, { kind: "none" });
  assert.equal(await peer.ended, "reset");
  assert.equal(peer.text, "");
});
