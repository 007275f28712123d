/** DNS over both transports: framing, one budget for all, and no patience. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { DnsListener } from "../../src/accept/dns-listener.ts";
import { type Around, around, createPair, listenTo, type Peer } from "../support/loopback.ts";

interface Made extends Around {
  readonly listener: DnsListener;
}

/** Answers with the message itself; `drop` gets nothing. */
function make(rate = 100): Made {
  const made = around({ dns_queries_per_second: rate });
  const listener = new DnsListener({
    ...made,
    answer: (message) => (message.toString("latin1") === "drop" ? undefined : Buffer.from(message)),
  });
  return { ...made, listener };
}

async function connectTo(context: TestContext, { listener }: Made): Promise<Peer> {
  const { near, far } = await createPair(context);
  listener.serveTcp(near);
  return listenTo(far);
}

function framed(text: string): string {
  return String.fromCharCode(text.length >> 8, text.length & 0xff) + text;
}

test("serveUdp: each datagram has its answer, except what is too long, over the rate, or no query", async () => {
  const { listener, deadlines } = make(3);
  const server = createSocket("udp4").bind(0, "127.0.0.1");
  await once(server, "listening");
  listener.serveUdp(server);
  const client = createSocket("udp4").bind(0, "127.0.0.1");
  await once(client, "listening");
  client.connect(server.address().port, "127.0.0.1");
  await once(client, "connect");
  const heard: string[] = [];
  client.on("message", (bytes) => heard.push(String(bytes)));
  for (const text of ["x".repeat(5_000), "drop", "a", "b", "c"]) client.send(text);
  while (heard.length < 2) await once(client, "message");
  deadlines.pass(1_000);
  client.send("d");
  while (heard.length < 3) await once(client, "message");
  assert.deepEqual(heard, ["a", "b", "d"]);
  server.emit("error", new Error("unheard"));
  server.close();
  client.close();
});

test("serveTcp: messages are answered in order, however they are cut", async (context) => {
  const made = make();
  const peer = await connectTo(context, made);
  peer.send(framed("one") + framed("two") + framed("three").slice(0, 4));
  assert.equal(await peer.until("two"), framed("one") + framed("two"));
  peer.send(framed("three").slice(4));
  await peer.until("three");
  (peer.socket as unknown as { end(): void }).end();
  assert.equal(await peer.ended, "end");
});

test("serveTcp: no length, too great a length, no query and too many end the connection", async (context) => {
  for (const bytes of ["\0\0", "\x10\x01", framed("drop")]) {
    const peer = await connectTo(context, make());
    peer.send(Buffer.from(bytes, "latin1"));
    await peer.ended;
    assert.equal(peer.text, "");
  }
  const peer = await connectTo(context, make(2));
  peer.send(framed("a").repeat(3));
  await peer.ended;
});

test("serveTcp: what stands still, or trickles, is closed in time", async (context) => {
  const made = make();
  const [silent, slow] = [await connectTo(context, made), await connectTo(context, made)];
  slow.send(framed("a"));
  await slow.until("a");
  made.deadlines.pass(9_000);
  slow.send(framed("b"));
  await slow.until("b");
  slow.send("\0");
  made.deadlines.pass(1_500);
  await silent.ended;
  made.deadlines.pass(9_000);
  await slow.ended;
});

test("serveTcp: a sandbox has so many connections at once", async (context) => {
  const made = make();
  const peers = await Promise.all(Array.from({ length: 64 }, () => connectTo(context, made)));
  const over = await connectTo(context, made);
  assert.equal(await over.ended, "reset");
  peers[0]?.send(framed("a"));
  await peers[0]?.until("a");
});
