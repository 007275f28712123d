import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, createSecureContext, TLSSocket } from "node:tls";
import { Http1Connection } from "../../src/accept/http1-connection.ts";
import { around, createPair, eventually, listenTo, settle } from "../support/loopback.ts";
import { createAuthority } from "../support/pki.ts";
import { answer, DOOR, head, hear, type Served, serve } from "./harness.ts";

const GET = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
const POST = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";
/** For how long a client may read on after the last answer. */
const LINGER_MS = 2_000;

test("Http1Connection answers a slow head with 408, counting from its first byte", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, "first") });
  served.peer.send(GET);
  await served.peer.until("first");
  served.deadlines.pass(served.limits.idle_timeout - 1);
  served.peer.send("GET ht");
  await bytesRead(served, GET.length + 6);
  served.deadlines.pass(served.limits.head_timeout - 1);
  served.peer.send("tp");
  await bytesRead(served, GET.length + 8);
  assert.equal(served.peer.ending, undefined);
  served.deadlines.pass(1);
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /HTTP\/1\.1 408 .*"retry":true/s);
  assert.equal(served.malformed[0]?.code, "E_TIMEOUT");
});

test("Http1Connection closes a connection that never sends, and one that idles, without a word", async (context) => {
  const silent = await serve(context);
  silent.deadlines.pass(silent.limits.head_timeout);
  assert.equal(await silent.peer.ended, "end");
  const idle = await serve(context, { onRequest: (inbound) => answer(inbound, "first") });
  idle.peer.send(GET);
  const { length } = await idle.peer.until("first");
  idle.deadlines.pass(idle.limits.idle_timeout - 1);
  await settle();
  assert.equal(idle.peer.ending, undefined);
  idle.deadlines.pass(1);
  assert.equal(await idle.peer.ended, "end");
  assert.equal(idle.peer.text.length, length);
  assert.deepEqual([silent.malformed, idle.malformed], [[], []]);
});

test("Http1Connection breaks off a body that stops moving", async (context) => {
  const served = await serve(context);
  served.peer.send(`${POST}Content-Length: 10\r\n\r\nhalf`);
  const heard = hear();
  (await served.request(0)).start(heard);
  served.deadlines.pass(served.limits.progress_timeout - 1);
  assert.equal(heard.lost(), undefined);
  served.deadlines.pass(1);
  assert.equal(heard.lost()?.code, "E_TIMEOUT");
  assert.equal(heard.lost()?.status, 408);
  assert.equal(await served.peer.ended, "reset");
});

test("Http1Connection waits for the exchange itself without a deadline of its own", async (context) => {
  const served = await serve(context);
  served.peer.send(GET);
  const inbound = await served.request(0);
  const heard = hear();
  inbound.start(heard);
  served.deadlines.pass(3_600_000);
  assert.equal(heard.lost(), undefined);
  answer(inbound, "at last");
  await served.peer.until("at last");
});

test("Http1Connection answers a malformed head, then reads on for a moment and closes", async (context) => {
  const cases: [string, number][] = [
    ["GET / HTTP/1.1\nHost: a\n\n", 400],
    ["GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", 400],
    ["GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 400],
    [`GET http://a.example/${"x".repeat(40_000)} HTTP/1.1\r\n`, 0],
    [`GET http://a.example/ HTTP/1.1\r\nX: ${"x".repeat(70_000)}`, 431],
    [`GET http://a.example/${"x".repeat(70_000)}`, 414],
    ["GET / HTTP/2.0\r\n\r\n", 505],
  ];
  for (const [bytes, status] of cases.filter(([, wanted]) => wanted > 0)) {
    const served = await serve(context);
    served.peer.send(bytes);
    assert.equal(await served.peer.ended, "end", bytes.slice(0, 50));
    assert.match(served.peer.text, new RegExp(`^HTTP/1\\.1 ${status} .*Connection: close`, "is"));
    assert.equal(served.arrivals.length, 0);
    // What is sent after is read and dropped, until the moment is over.
    served.peer.send(GET);
    await settle();
    assert.equal(served.closed, 0);
    served.deadlines.pass(LINGER_MS);
    await eventually(() => served.closed === 1);
    assert.equal(served.arrivals.length, 0);
  }
});

test("Http1Connection refuses a head that ends within, and says nothing where nothing is to be said", async (context) => {
  const served = await serve(context);
  served.pair.far.end("GET http://a.example/ HTT");
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /^HTTP\/1\.1 400 /);
  const silent = await serve(context, { silent: true });
  silent.peer.send("\x16\x03\x01");
  assert.equal(await silent.peer.ended, "end");
  assert.equal(silent.peer.text, "");
});

test("Http1Connection closes when the client does so between requests", async (context) => {
  const served = await serve(context);
  served.pair.far.end();
  assert.equal(await served.peer.ended, "end");
  await eventually(() => served.closed === 1);
  assert.deepEqual(served.malformed, []);
});

test("Http1Connection lets a slow client read all of a last answer, however long that takes", async (context) => {
  const served = await serve(context);
  served.peer.send("GET http://a.example/ HTTP/1.0\r\n\r\n");
  const inbound = await served.request(0);
  served.pair.far.pause();
  inbound.respond(head(), { kind: "close" });
  // More than the kernel takes, so that much of it waits here.
  const size = 30_000_000;
  inbound.write(Buffer.alloc(size, "x"));
  inbound.end([]);
  served.deadlines.pass(LINGER_MS * 5);
  await settle();
  served.pair.far.resume();
  assert.equal(await served.peer.ended, "end");
  assert.equal(served.peer.text.length - served.peer.text.indexOf("\r\n\r\n") - 4, size);
  served.deadlines.pass(LINGER_MS);
  await eventually(() => served.closed === 1);
});

test("Http1Connection resets a client that never reads the rest of a last answer", async (context) => {
  const served = await serve(context);
  served.peer.send("GET http://a.example/ HTTP/1.0\r\n\r\n");
  const inbound = await served.request(0);
  served.pair.far.pause();
  inbound.respond(head(), { kind: "close" });
  inbound.write(Buffer.alloc(30_000_000, "x"));
  inbound.end([]);
  served.deadlines.pass(served.limits.progress_timeout);
  await eventually(() => served.closed === 1);
  served.pair.far.resume();
  // A FIN would make what it has the whole of it.
  assert.equal(await served.peer.ended, "reset");
});

test("drain ends an idle connection at once and a busy one after its answer", async (context) => {
  const idle = await serve(context);
  idle.connection.drain();
  assert.equal(await idle.peer.ended, "end");
  const busy = await serve(context);
  busy.peer.send(GET + GET);
  const inbound = await busy.request(0);
  busy.connection.drain();
  answer(inbound, "last");
  assert.equal(await busy.peer.ended, "end");
  assert.match(busy.peer.text, /Connection: close.*last$/is);
  assert.equal(busy.arrivals.length, 1);
});

test("Http1Connection takes no further request once the gate drains", async (context) => {
  const served = await serve(context);
  served.peer.send(GET + GET);
  const inbound = await served.request(0);
  served.draining = true;
  answer(inbound, "last");
  assert.equal(await served.peer.ended, "end");
  assert.equal(served.arrivals.length, 1);
});

test("cut resets whatever is under way and tells the exchange", async (context) => {
  const served = await serve(context);
  served.peer.send(GET);
  const heard = hear();
  (await served.request(0)).start(heard);
  served.connection.cut();
  assert.equal(heard.lost()?.fault, "operator");
  assert.equal(await served.peer.ended, "reset");
  await eventually(() => served.closed === 1);
});

test("takeOver answers and hands over the socket with what came early, in order", async (context) => {
  const served = await serve(context);
  let ended = false;
  served.connection.whenClosed(() => {
    ended = true;
  });
  served.peer.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nearly");
  const inbound = await served.request(0);
  assert.equal(inbound.head.target, "a.example:443");
  const raw = inbound.takeOver({ status: 200, phrase: "Connection Established", minor: 1, fields: [] });
  assert.equal(inbound.responded, 200);
  assert.equal(raw.early.toString("latin1"), "early");
  assert.equal(raw.socket.isPaused(), true);
  assert.equal(await served.peer.until("\r\n\r\n"), "HTTP/1.1 200 Connection Established\r\n\r\n");
  // Nothing of HTTP acts on it any more: no deadline, no parser, no end.
  served.deadlines.pass(3_600_000);
  const near = listenTo(raw.socket.resume());
  served.peer.send("GET / HTTP/1.1\n");
  await near.until("GET / HTTP/1.1\n");
  served.pair.far.end();
  assert.equal(await near.ended, "end");
  assert.equal(raw.socket.writable, true);
  assert.deepEqual(served.malformed, []);
  raw.socket.end();
  await eventually(() => served.closed === 1);
  assert.equal(ended, true);
  served.connection.whenClosed(() => {
    ended = false;
  });
  assert.equal(ended, false, "it tells late comers at once");
});

test("Http1Connection tells a client of its malformed body once, and whoever relays it", async (context) => {
  const served = await serve(context);
  served.peer.send(`${POST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`);
  const inbound = await served.request(0);
  const heard = hear();
  heard.gone = (failure) => {
    assert.equal(failure.code, "E_BAD_REQUEST");
    answer(inbound, "no good");
  };
  inbound.start(heard);
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /Connection: close.*no good$/is);
  assert.deepEqual(served.malformed, [], "the exchange answers and records, nobody else does");
});

test("Http1Connection breaks off where the body turns out malformed after the answer began", async (context) => {
  const served = await serve(context);
  served.peer.send(`${POST}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
  const inbound = await served.request(0);
  const heard = hear();
  heard.gone = () => inbound.abort();
  inbound.start(heard);
  inbound.respond(head(), { kind: "length", length: 10 });
  inbound.write(Buffer.from("half"));
  await served.peer.until("half");
  served.peer.send("zz\r\n");
  assert.equal(await served.peer.ended, "reset");
});

test("Http1Connection resets below TLS too, without a close_notify before", async (context) => {
  const { near, far } = await createPair(context);
  const { certPem, keyPem } = createAuthority("Throw-away root").issue({ names: ["a.example"] });
  near.on("error", () => undefined);
  const secured = new TLSSocket(near, {
    isServer: true,
    secureContext: createSecureContext({ cert: certPem, key: keyPem }),
  });
  const handlers = {
    malformed: () => undefined,
    closed: () => undefined,
    request: ({ inbound }: { inbound: Parameters<typeof answer>[0] }) => {
      inbound.start(hear());
      inbound.respond(head(), { kind: "close" });
      inbound.write(Buffer.from("half"));
    },
  };
  const surroundings = { ...around(), draining: () => false };
  const door = { ...DOOR, scheme: "https" as const };
  const connection = new Http1Connection({ socket: secured, transport: near }, door, handlers, surroundings);
  const client = connect({ socket: far, rejectUnauthorized: false });
  const peer = listenTo(client);
  let rawEnd = false;
  far.once("end", () => {
    rawEnd = true;
  });
  peer.send("GET / HTTP/1.0\r\n\r\n");
  await peer.until("half");
  connection.cut();
  assert.equal(await peer.ended, "reset");
  assert.equal(rawEnd, false);
});

/** Until the code under test has seen so many bytes. */
function bytesRead({ pair }: Served, count: number): Promise<void> {
  return eventually(() => pair.near.bytesRead >= count);
}

test("Http1Connection answers no further request while its client reads no answer, and goes on once it does", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, "x".repeat(4_000_000)) });
  const { peer, pair } = served;
  pair.far.pause();
  peer.send(GET.repeat(9));
  await eventually(() => served.arrivals.length > 0);
  await settle();
  assert.equal(served.arrivals.length, 1);
  assert.equal(served.connection.idle, false);
  pair.far.resume();
  await eventually(() => served.arrivals.length === 9);
});

test("Http1Connection resets a client that leaves an answer unread for too long, and asks no exchange for that", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, "x".repeat(20_000_000)) });
  served.pair.far.pause();
  served.peer.send(GET.repeat(2));
  await served.request(0);
  await settle();
  served.deadlines.pass(served.limits.progress_timeout);
  served.pair.far.resume();
  assert.equal(await served.peer.ended, "reset");
  assert.equal(served.arrivals.length, 1);
});

test("Http1Connection lets a client that ended its side read the answer, and then ends", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, "x".repeat(4_000_000)) });
  served.pair.far.pause();
  served.peer.send(GET);
  await served.request(0);
  await settle();
  served.pair.far.end();
  served.pair.far.resume();
  assert.equal(await served.peer.ended, "end");
  assert.ok(served.peer.text.length > 4_000_000);
});

test("Http1Connection answers what was asked before the client ended its side, and what was asked in part", async (context) => {
  const served = await serve(context);
  served.peer.send(GET + GET.replace("example/ ", "example/second ") + GET.slice(0, 10));
  served.pair.far.end();
  const first = await served.request(0);
  await settle();
  answer(first, "first");
  answer(await served.request(1), "second");
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /first.*second.*HTTP\/1\.1 400 /s);
  assert.equal(served.malformed.length, 1);
});
