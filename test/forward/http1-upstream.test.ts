import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import { Failure } from "../../src/model/failure.ts";
import { breakOff, eventually, settle } from "../support/loopback.ts";
import { ask, type Dialled, dialled, hearAnswer, NO_BODY, request } from "./harness.ts";

const END = (socket: Socket): void => void socket.end();
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const PROTOCOL = { code: "E_UPSTREAM_PROTOCOL", fault: "upstream" } as const;

test("Http1Upstream sends a request and reads its answer, then rests and serves another", async (context) => {
  const made = await dialled(context);
  const { upstream, origin, home } = made;
  assert.equal(upstream.reused, false);
  for (const round of [1, 2]) {
    const heard = ask(made);
    assert.equal(upstream.usable, false);
    await origin.until("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".repeat(round));
    origin.send(OK);
    await heard.over();
    assert.equal(heard.status, 200);
    assert.equal(heard.body, "ok");
    assert.deepEqual(heard.trailers, []);
    assert.equal(upstream.reused, true);
    assert.equal(upstream.usable, true);
  }
  assert.deepEqual(home.idles, [made.limits.pool_idle_timeout, made.limits.pool_idle_timeout]);
});

test("Http1Upstream reads an answer that comes byte by byte, chunks and trailers too", async (context) => {
  const made = await dialled(context);
  const heard = ask(made);
  const answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n";
  for (const byte of answer) {
    made.origin.send(byte);
    await new Promise(setImmediate);
  }
  await heard.over();
  assert.deepEqual(heard.framing, { kind: "chunked" });
  assert.equal(heard.body, "abc");
  assert.deepEqual(
    heard.trailers?.map(({ name, value }) => [name, value]),
    [["X-Sum", "7"]],
  );
  assert.equal(made.upstream.usable, true);
});

test("Http1Upstream writes a body as it is framed", async (context) => {
  const made = await dialled(context);
  const { upstream, origin } = made;
  const heard = hearAnswer();
  upstream.send(request("POST"), { kind: "chunked" }, heard);
  upstream.write(Buffer.from("abc"));
  await origin.until("3\r\nabc\r\n");
  upstream.write(Buffer.from("de"));
  upstream.end([{ name: "X-Sum", key: "x-sum", value: "7" }]);
  await origin.until("2\r\nde\r\n0\r\nX-Sum: 7\r\n\r\n");
  origin.send(OK);
  await heard.over();
  assert.equal(upstream.usable, true);
});

test("Http1Upstream knows which answers have no body, whatever their fields say", async (context) => {
  const cases = [
    ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"],
    ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
  ] as const;
  for (const [method, answer] of cases) {
    const made = await dialled(context);
    const heard = ask(made, request(method));
    made.origin.send(answer);
    await heard.over();
    assert.equal(heard.failure, undefined);
    assert.equal(made.upstream.usable, true, answer);
  }
});

test("Http1Upstream lets a body end with the connection only where nothing frames it", async (context) => {
  const whole = await dialled(context);
  const heard = ask(whole);
  whole.origin.send("HTTP/1.1 200 OK\r\n\r\nuntil the end");
  await eventually(() => heard.body !== "");
  assert.equal(heard.trailers, undefined);
  whole.pair.far.end();
  await heard.over();
  assert.equal(heard.body, "until the end");
  assert.equal(heard.failure, undefined);
  assert.equal(whole.upstream.usable, false);
  assert.equal(whole.home.closes, 1);
});

test("Http1Upstream fails an answer that is cut, by FIN or by reset, and never ends it", async (context) => {
  const cut = [
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "HTTP/1.1 200 OK\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\nContent-Le",
  ];
  for (const answer of cut) {
    for (const leave of [END, breakOff]) {
      // Without a length a FIN is how the body ends.
      if (answer.endsWith("OK\r\n\r\nhalf") && leave === END) continue;
      const made = await dialled(context);
      const heard = ask(made);
      made.origin.send(answer);
      await eventually(() => made.pair.near.bytesRead === answer.length);
      leave(made.pair.far);
      await heard.over();
      assert.deepEqual(pick(heard.failure), PROTOCOL, answer);
      assert.equal(heard.untouched, false);
      assert.equal(heard.trailers, undefined);
      assert.equal(made.home.closes, 1);
    }
  }
});

test("Http1Upstream says that nothing was touched where no byte of an answer came", async (context) => {
  for (const leave of [END, breakOff]) {
    const made = await dialled(context);
    const heard = ask(made);
    await made.origin.until("\r\n\r\n");
    leave(made.pair.far);
    await heard.over();
    assert.deepEqual(pick(heard.failure), PROTOCOL);
    assert.equal(heard.untouched, true);
  }
});

test("Http1Upstream passes on interim answers, so many and no more", async (context) => {
  const made = await dialled(context, { interim_responses: 3 });
  const heard = ask(made);
  const interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  made.origin.send(`HTTP/1.1 100 Continue\r\n\r\n${interim}${interim}${OK}`);
  await heard.over();
  assert.deepEqual(heard.interim, [100, 103, 103]);
  assert.equal(heard.status, 200);
  // Counted anew for each exchange.
  const flooded = ask(made);
  made.origin.send(interim.repeat(4));
  await flooded.over();
  assert.deepEqual(flooded.interim, [103, 103, 103]);
  assert.deepEqual(pick(flooded.failure), PROTOCOL);
});

test("Http1Upstream fails on what is no answer, and takes no head without end", async (context) => {
  const cases = [
    "SSH-2.0-x\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}`,
    "HTTP/1.1 102 Processing\r\nContent-Length: 3\r\n\r\nabc",
  ];
  for (const answer of cases) {
    const made = await dialled(context);
    const heard = ask(made);
    made.origin.send(answer);
    await heard.over();
    assert.deepEqual(pick(heard.failure), PROTOCOL, answer.slice(0, 40));
    assert.equal(heard.untouched, false);
    await made.origin.ended;
  }
});

test("Http1Upstream wraps what its listener throws, and closes", async (context) => {
  const made = await dialled(context);
  const heard = hearAnswer();
  heard.head = () => {
    throw new TypeError("Unforeseen");
  };
  made.upstream.send(request(), NO_BODY, heard);
  made.upstream.end([]);
  made.origin.send(OK);
  await heard.over();
  assert.deepEqual(pick(heard.failure), { code: "E_INTERNAL", fault: "gate" });
});

test("Http1Upstream never reuses a connection after surplus bytes, a close, or an answer before the request's end", async (context) => {
  const answers = [
    `${OK}x`,
    OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
    OK.replace("1.1", "1.0"),
    "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  ];
  for (const answer of answers) {
    const made = await dialled(context);
    const heard = ask(made);
    made.origin.send(answer);
    await heard.over();
    assert.equal(heard.failure, undefined);
    assertUnused(made);
  }
  const early = await dialled(context);
  const heard = hearAnswer();
  early.upstream.send(request("POST"), { kind: "length", length: 10 }, heard);
  early.upstream.write(Buffer.from("half"));
  early.origin.send(OK);
  await heard.over();
  assertUnused(early);
  // What the client still sends has no reader any more, and does no harm.
  assert.equal(early.upstream.write(Buffer.from("other.")), true);
  early.upstream.end([]);
});

test("Http1Upstream closes on bytes that nobody asked for, before, between and after", async (context) => {
  for (const served of [false, true]) {
    const made = await dialled(context);
    if (served) {
      const heard = ask(made);
      made.origin.send(OK);
      await heard.over();
    }
    made.origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    await made.origin.ended;
    assert.equal(made.upstream.usable, false);
    assert.equal(made.home.closes, 1);
  }
});

test("Http1Upstream is of no use once an idle upstream has ended, and says so", async (context) => {
  for (const leave of [END, breakOff]) {
    const made = await dialled(context);
    const heard = ask(made);
    made.origin.send(OK);
    await heard.over();
    leave(made.pair.far);
    await eventually(() => made.home.closes === 1);
    assert.equal(made.upstream.usable, false);
  }
});

test("Http1Upstream idles as long as the upstream promises, less a second, and never longer than the limit", async (context) => {
  const cases = [
    ["timeout=5", 4_000],
    ["timeout=1", 0],
    ["timeout=0", 0],
    ["timeout=999999", 30_000],
    ["max=3", 30_000],
  ] as const;
  for (const [value, keepMs] of cases) {
    const made = await dialled(context, { pool_idle_timeout: 30_000 });
    const heard = ask(made);
    made.origin.send(OK.replace("\r\n\r\n", `\r\nKeep-Alive: ${value}\r\n\r\n`));
    await heard.over();
    assert.deepEqual(made.home.idles, [keepMs], value);
    if (keepMs === 0) continue;
    made.deadlines.pass(keepMs - 1);
    assert.equal(made.upstream.usable, true);
    made.deadlines.pass(1);
    assert.equal(made.upstream.usable, false);
    await made.origin.ended;
  }
});

test("Http1Upstream waits for an answer from the request's last byte, and for a body from its own", async (context) => {
  const made = await dialled(context);
  const { limits, deadlines, upstream, origin } = made;
  const heard = hearAnswer();
  upstream.send(request("POST"), { kind: "length", length: 2 }, heard);
  deadlines.pass(limits.response_timeout - 1);
  upstream.write(Buffer.from("a"));
  deadlines.pass(limits.response_timeout - 1);
  upstream.write(Buffer.from("b"));
  upstream.end([]);
  deadlines.pass(limits.response_timeout - 1);
  origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  await eventually(() => heard.status === 200);
  deadlines.pass(limits.progress_timeout - 1);
  origin.send("x");
  await eventually(() => heard.body === "x");
  deadlines.pass(limits.progress_timeout - 1);
  assert.equal(heard.failure, undefined);
  deadlines.pass(1);
  assert.deepEqual(pick(heard.failure), { code: "E_TIMEOUT", fault: "upstream" });
  assert.equal(heard.untouched, false);
  await origin.ended;
});

test("Http1Upstream fails where no answer comes in time", async (context) => {
  const made = await dialled(context);
  const heard = ask(made);
  made.deadlines.pass(made.limits.response_timeout - 1);
  assert.equal(heard.failure, undefined);
  made.deadlines.pass(1);
  assert.deepEqual(pick(heard.failure), { code: "E_TIMEOUT", fault: "upstream" });
  assert.equal(heard.untouched, true);
});

test("Http1Upstream reads no further while it is paused, and has no deadline then", async (context) => {
  const made = await dialled(context);
  const { upstream, origin, limits, deadlines } = made;
  const size = 4_000_000;
  let pieces = 0;
  const heard = hearAnswer(() => {
    pieces += 1;
    upstream.pause();
  });
  upstream.send(request(), NO_BODY, heard);
  upstream.end([]);
  origin.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`);
  origin.send(Buffer.alloc(size, "x"));
  await eventually(() => pieces > 0);
  await settle();
  assert.ok(pieces < 4);
  deadlines.pass(limits.progress_timeout * 2);
  assert.equal(heard.failure, undefined);
  while (heard.trailers === undefined) {
    upstream.resume();
    await new Promise(setImmediate);
  }
  assert.equal(heard.body.length, size);
});

test("Http1Upstream tells when a slow upstream takes more", async (context) => {
  const made = await dialled(context);
  made.pair.far.pause();
  const heard = hearAnswer();
  made.upstream.send(request("POST"), { kind: "chunked" }, heard);
  while (made.upstream.write(Buffer.alloc(1_000_000)));
  made.pair.far.resume();
  await eventually(() => heard.drains > 0);
});

test("abort closes before the request is whole and says nothing more", async (context) => {
  const made = await dialled(context);
  const heard = hearAnswer();
  made.upstream.send(request("POST"), { kind: "chunked" }, heard);
  made.upstream.write(Buffer.from("half"));
  await made.origin.until("half");
  made.upstream.abort();
  await made.origin.ended;
  assert.doesNotMatch(made.origin.text, /\r\n0\r\n/);
  assert.equal(heard.failure, undefined);
  assert.equal(made.home.closes, 1);
  made.upstream.abort();
  made.upstream.destroy();
  made.upstream.resume();
  assert.equal(made.home.closes, 1, "once");
});

test("takeOver hands over the socket after a 101, with what came behind it", async (context) => {
  const made = await dialled(context);
  const heard = ask(made);
  made.origin.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nframes");
  await eventually(() => heard.status === 101);
  const raw = made.upstream.takeOver();
  assert.equal(raw.early.toString("latin1"), "frames");
  assert.equal(raw.socket.isPaused(), true);
  assert.equal(made.home.closes, 1);
  // No deadline and no parser act on it any more.
  made.deadlines.pass(made.limits.response_timeout * 2);
  raw.socket.write("more");
  await made.origin.until("more");
  raw.socket.resume();
  made.origin.send("HTTP");
  breakOff(made.pair.far);
  await new Promise((resolve) => raw.socket.once("close", resolve));
  assert.equal(heard.failure, undefined);
});

function pick(failure: Failure | undefined) {
  assert.ok(failure instanceof Failure);
  return { code: failure.code, fault: failure.fault };
}

function assertUnused({ home, upstream }: Dialled): void {
  assert.deepEqual(home.idles, []);
  assert.equal(home.closes, 1);
  assert.equal(upstream.usable, false);
}
