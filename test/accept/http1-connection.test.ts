import assert from "node:assert/strict";
import { test } from "node:test";
import { CLIENT_LEFT } from "../../src/model/failure.ts";
import { breakOff, eventually, settle } from "../support/loopback.ts";
import { answer, head, hear, serve, textOf } from "./harness.ts";

const GET = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n";
const POST = "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n";

test("Http1Connection hands over requests one at a time and answers them in order, however they arrive", async (context) => {
  const served = await serve(context);
  const { peer, arrivals } = served;
  const paths = ["/0", "/1", "/2"];
  const text = paths.map((path) => GET.replace("example/ ", `example${path} `)).join("");
  for (const byte of text) peer.send(byte);
  for (const [index, path] of paths.entries()) {
    const inbound = await served.request(index);
    assert.equal(inbound.head.target, path);
    await settle();
    assert.equal(arrivals.length, index + 1, "the next one waits for this answer");
    assert.equal(served.connection.idle, false);
    answer(inbound, `answer ${index}`);
  }
  await peer.until("answer 2");
  assert.match(peer.text, /answer 0.*answer 1.*answer 2/s);
  assert.equal(served.connection.idle, true);
  assert.equal(peer.ending, undefined);
  const [first] = arrivals;
  assert.equal(first?.transport, served.pair.near);
  assert.equal(first?.claims.authority?.port, 80);
  assert.equal(first?.door.listener, "explicit");
});

test("Http1Connection reads two requests of one packet, the second after the first is answered", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, inbound.head.target) });
  served.peer.send(GET + GET.replace("example/ ", "example/second "));
  await served.peer.until("/second");
  assert.equal(served.arrivals.length, 2);
});

test("Http1Connection stops reading once 64 KiB of later requests wait, and goes on after the answer", async (context) => {
  const served = await serve(context);
  const { peer, pair } = served;
  const many = 500;
  const long = GET.replace("\r\n\r\n", `\r\nX-Long: ${"x".repeat(8_000)}\r\n\r\n`);
  peer.send(long.repeat(many));
  const first = await served.request(0);
  await eventually(() => pair.near.isPaused());
  await settle();
  assert.ok(pair.near.bytesRead < 500_000, `${pair.near.bytesRead} of ${long.length * many} bytes were read`);
  answer(first, "first");
  for (let index = 1; index < many; index += 1) answer(await served.request(index), `<${index}>`);
  await peer.until(`<${many - 1}>`);
});

test("Http1Connection gives a body to the exchange and keeps what follows for the next", async (context) => {
  const served = await serve(context);
  served.peer.send(`${POST}Content-Length: 5\r\n\r\nhello${GET}`);
  const inbound = await served.request(0);
  assert.deepEqual(inbound.framing, { kind: "length", length: 5 });
  const heard = hear();
  inbound.start(heard);
  assert.equal(textOf(heard), "hello");
  assert.deepEqual(heard.ended, []);
  answer(inbound, "one");
  answer(await served.request(1), "two");
  await served.peer.until("two");
});

test("Http1Connection decodes chunks, extensions and trailers, byte by byte", async (context) => {
  const served = await serve(context);
  const chunked = `${POST}Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 7\r\n\r\n`;
  for (const byte of chunked) served.peer.send(byte);
  const inbound = await served.request(0);
  const heard = hear();
  inbound.start(heard);
  await eventually(() => heard.ended !== undefined);
  assert.equal(textOf(heard), "hello world");
  assert.deepEqual(
    heard.ended?.map(({ name, value }) => [name, value]),
    [["X-Sum", "7"]],
  );
});

test("Http1Connection tells of a body without a byte, and of none, at once", async (context) => {
  for (const request of [GET, `${POST}Content-Length: 0\r\n\r\n`]) {
    const served = await serve(context);
    served.peer.send(request);
    const heard = hear();
    (await served.request(0)).start(heard);
    assert.deepEqual(heard.ended, []);
  }
});

test("Http1Connection pauses and resumes a body as it is told", async (context) => {
  const served = await serve(context);
  const size = 4_000_000;
  served.peer.send(`${POST}Content-Length: ${size}\r\n\r\n`);
  served.peer.send(Buffer.alloc(size, "x"));
  const inbound = await served.request(0);
  const heard = hear(() => inbound.pause());
  inbound.start(heard);
  await eventually(() => heard.body.length > 0);
  await settle();
  const had = heard.body.length;
  assert.ok(had < 4, "what was on its way when it was paused, and no more");
  // No deadline of the client's while the gate itself does not read.
  served.deadlines.pass(served.limits.progress_timeout * 2);
  await settle();
  assert.equal(heard.lost(), undefined);
  heard.data = (bytes) => void heard.body.push(bytes);
  inbound.resume();
  await eventually(() => heard.ended !== undefined);
  assert.equal(Buffer.concat(heard.body).length, size);
});

test("Http1Connection tells the answer's source to stop while the client does not read", async (context) => {
  const served = await serve(context);
  const { peer, pair } = served;
  peer.send(GET);
  const inbound = await served.request(0);
  const heard = hear();
  inbound.start(heard);
  pair.far.pause();
  inbound.respond(head(), { kind: "chunked" });
  const piece = Buffer.alloc(1_000_000, "x");
  let written = 0;
  while (inbound.write(piece)) written += 1;
  pair.far.resume();
  await eventually(() => heard.drains > 0);
  inbound.end([]);
  await peer.until("\r\n0\r\n\r\n");
  assert.ok(peer.text.length > (written + 1) * piece.length);
});

test("Http1Connection resets a client that stops reading an answer for too long", async (context) => {
  const served = await serve(context);
  served.peer.send(GET);
  const inbound = await served.request(0);
  const heard = hear();
  inbound.start(heard);
  served.pair.far.pause();
  inbound.respond(head(), { kind: "chunked" });
  while (inbound.write(Buffer.alloc(1_000_000, "x")));
  served.deadlines.pass(served.limits.progress_timeout);
  assert.equal(heard.lost()?.code, "E_TIMEOUT");
  served.pair.far.resume();
  assert.equal(await served.peer.ended, "reset");
});

test("Http1Connection answers a 1.0 client once and closes, with a body that ends with the connection", async (context) => {
  const served = await serve(context);
  served.peer.send("GET http://a.example/ HTTP/1.0\r\n\r\n");
  const inbound = await served.request(0);
  assert.equal(inbound.head.minor, 0);
  inbound.inform(head(103));
  inbound.respond(head(), { kind: "chunked" });
  inbound.write(Buffer.from("body"));
  inbound.end([]);
  assert.equal(await served.peer.ended, "end");
  assert.match(
    served.peer.text,
    /^HTTP\/1\.1 200 OK\r\n(?!.*(?:chunked|103)).*Connection: close\r\n\r\nbody$/s,
  );
});

test("Http1Connection keeps the connection of a 1.0 client that asks for it, where the answer has a length", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, inbound.head.target) });
  const request = "GET http://a.example/one HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  served.peer.send(request);
  await served.peer.until("/one");
  assert.match(served.peer.text, /Connection: keep-alive/i);
  served.peer.send(request.replace("one", "two"));
  await served.peer.until("/two");
  assert.equal(served.peer.ending, undefined);
});

test("Http1Connection ends after an answer to `Connection: close`", async (context) => {
  const served = await serve(context, { onRequest: (inbound) => answer(inbound, "last") });
  served.peer.send(GET.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n") + GET);
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /Connection: close.*last$/is);
  assert.equal(served.arrivals.length, 1);
});

test("Http1Connection ends after an answer that came before the request was whole", async (context) => {
  const served = await serve(context);
  served.peer.send(`${POST}Content-Length: 10\r\n\r\nhalf`);
  const inbound = await served.request(0);
  inbound.start(hear());
  answer(inbound, "enough");
  // The rest is read and dropped, so that no reset takes the answer away.
  served.peer.send(`other.${GET}`);
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /enough$/);
  assert.equal(served.arrivals.length, 1);
});

test("Http1Connection still answers a client that closed its side after the request", async (context) => {
  const served = await serve(context);
  served.pair.far.end(GET);
  const inbound = await served.request(0);
  await eventually(() => served.pair.near.readableEnded);
  answer(inbound, "answer");
  assert.equal(await served.peer.ended, "end");
  assert.match(served.peer.text, /answer$/);
  await eventually(() => served.closed === 1);
});

test("Http1Connection tells the exchange that the client went away, in its body or while it waits", async (context) => {
  for (const rest of ["Content-Length: 10\r\n\r\nhalf", "Content-Length: 0\r\n\r\n"]) {
    const served = await serve(context);
    served.peer.send(POST + rest);
    const inbound = await served.request(0);
    const heard = hear();
    inbound.start(heard);
    breakOff(served.pair.far);
    await eventually(() => served.closed === 1);
    assert.equal(heard.lost()?.status, CLIENT_LEFT);
    // Nothing that is still said does harm.
    answer(inbound, "too late");
    inbound.abort();
  }
});

test("Http1Connection resets a client that ends within its body", async (context) => {
  const served = await serve(context);
  served.pair.far.end(`${POST}Content-Length: 10\r\n\r\nhalf`);
  const heard = hear();
  const inbound = await served.request(0);
  // Before the body has a reader the end is kept for it.
  await eventually(() => served.pair.near.readableEnded);
  inbound.start(heard);
  assert.equal(heard.lost()?.code, "E_BAD_REQUEST");
  assert.equal(await served.peer.ended, "reset");
});

test("Http1Connection resets, and sends no FIN, where the exchange is broken off", async (context) => {
  const served = await serve(context);
  served.peer.send("GET http://a.example/ HTTP/1.0\r\n\r\n");
  const inbound = await served.request(0);
  inbound.start(hear());
  inbound.respond(head(), { kind: "close" });
  inbound.write(Buffer.from("half"));
  await served.peer.until("half");
  inbound.abort();
  // To a 1.0 client a FIN would be the end of the body.
  assert.equal(await served.peer.ended, "reset");
});
