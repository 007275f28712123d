import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { ReverseClient } from "../../src/accept/reverse-client.ts";
import { createStreamPair, type StreamEnd } from "../../src/accept/stream-pair.ts";
import { createPair, eventually, listenTo, settle } from "../support/loopback.ts";

async function createClient(context: TestContext) {
  const { near, far } = await createPair(context);
  near.on("error", () => undefined).resume();
  return { client: new ReverseClient(near), socket: near, peer: listenTo(far), far };
}

/** Opens streams and keeps their far ends. */
function opener(): { open: () => StreamEnd; readonly far: StreamEnd[] } {
  const far: StreamEnd[] = [];
  return {
    far,
    open: () => {
      const [one, other] = createStreamPair();
      far.push(other);
      return one;
    },
  };
}

test("ReverseClient.take runs requests in turn", async (context) => {
  const { client } = await createClient(context);
  const ran: number[] = [];
  for (const number of [1, 2, 3]) client.take(() => void ran.push(number));
  assert.deepEqual(ran, [1]);
  client.done();
  assert.deepEqual([ran, client.busy], [[1, 2], true]);
  client.done();
  client.done();
  assert.deepEqual([ran, client.busy], [[1, 2, 3], false]);
});

test("ReverseClient.take forgets what follows a last request, and closes", async (context) => {
  const { client, peer, far } = await createClient(context);
  const ran: number[] = [];
  for (const number of [1, 2, 3]) client.take(() => void ran.push(number));
  client.closing = true;
  client.done();
  client.take(() => void ran.push(4));
  assert.deepEqual(ran, [1]);
  assert.equal(await peer.ended, "end");
  far.end();
});

test("ReverseClient.take cuts a client that sends too far ahead", async (context) => {
  const { client, peer } = await createClient(context);
  for (let count = 0; count < 66; count += 1) client.take(() => undefined);
  assert.equal(await peer.ended, "reset");
});

test("ReverseClient.stream gives an idle stream of the same key again, and opens one otherwise", async (context) => {
  const { client } = await createClient(context);
  const { open, far } = opener();
  const first = client.stream("a", open);
  client.release("a", first);
  assert.equal(client.stream("a", open), first);
  assert.notEqual(client.stream("a", open), first);
  const other = client.stream("b", open);
  client.release("b", other);
  assert.notEqual(client.stream("a", open), other);
  assert.equal(far.length, 4);
});

test("ReverseClient.stream gives none that has ended, and drops one whose far end leaves while it is idle", async (context) => {
  const { client } = await createClient(context);
  const { open, far } = opener();
  const first = client.stream("a", open);
  client.release("a", first);
  far[0]?.end();
  assert.notEqual(client.stream("a", open), first);
  await eventually(() => first.destroyed);
  const half = client.stream("a", open);
  half.end();
  client.release("a", half);
  assert.ok(half.destroyed);
});

test("ReverseClient.release keeps some streams and lets the oldest go", async (context) => {
  const { client } = await createClient(context);
  const { open } = opener();
  const streams = Array.from({ length: 10 }, (_, index) => client.stream(`${index}`, open));
  for (const [index, stream] of streams.entries()) client.release(`${index}`, stream);
  assert.deepEqual(
    streams.map(({ destroyed }) => destroyed),
    streams.map((_, index) => index < 2),
  );
});

test("ReverseClient: its streams go with its connection", async (context) => {
  const { client, far } = await createClient(context);
  const { open } = opener();
  const streams = [client.stream("a", open), client.stream("b", open)];
  client.release("b", streams[1] as StreamEnd);
  far.resetAndDestroy();
  await eventually(() => streams.every(({ destroyed }) => destroyed));
});

test("ReverseClient.drain ends an idle connection now, and a busy one after its answer", async (context) => {
  const idle = await createClient(context);
  idle.client.drain();
  assert.equal(await idle.peer.ended, "end");
  const busy = await createClient(context);
  busy.client.take(() => undefined);
  busy.client.drain();
  await settle();
  assert.equal(busy.peer.ending, undefined);
  busy.client.done();
  assert.equal(await busy.peer.ended, "end");
});

test("ReverseClient.drain does not wait for a client that keeps its side open", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { client, socket, peer } = await createClient(context);
  client.drain();
  assert.equal(await peer.ended, "end");
  assert.equal(socket.destroyed, false);
  context.mock.timers.tick(2_000);
  assert.equal(socket.destroyed, true);
});

test("ReverseClient.cut resets, and whenClosed tells of it, also afterwards", async (context) => {
  const { client, socket, peer } = await createClient(context);
  const told: string[] = [];
  client.whenClosed(() => void told.push("then"));
  const closed = once(socket, "close");
  client.cut();
  assert.equal(await peer.ended, "reset");
  await closed;
  client.whenClosed(() => void told.push("after"));
  assert.deepEqual(told, ["then", "after"]);
});
