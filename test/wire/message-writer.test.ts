import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field, Framing } from "../../src/model/exchange.ts";
import { CHUNKED, CLOSE, NONE } from "../../src/wire/framing.ts";
import { BodyWriter, renderRequestHead, renderResponseHead } from "../../src/wire/message-writer.ts";
import { failure, field } from "./support.ts";

const FIVE: Framing = { kind: "length", length: 5 };

function request(framing: Framing, ...fields: Field[]): string {
  return renderRequestHead({ method: "POST", target: "/a?b", minor: 0, fields }, framing);
}

function response(status: number, framing: Framing, fields: Field[] = [], options: object = {}): string {
  const head = { status, phrase: "X", minor: 0, fields } as const;
  return renderResponseHead(head, framing, { close: false, minor: 1, ...options });
}

/** A socket that notes each write and answers as told. */
function sink(...answers: boolean[]) {
  const writes: Buffer[] = [];
  return {
    writes,
    write(bytes: Buffer): boolean {
      writes.push(bytes);
      return answers.shift() ?? true;
    },
    get texts(): string[] {
      return writes.map((bytes) => bytes.toString("latin1"));
    },
  };
}

function microtask(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(resolve));
}

test("renderRequestHead() always says HTTP/1.1 and sets the framing", () => {
  assert.equal(request(NONE, field("Host", "a")), "POST /a?b HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal(request(FIVE), "POST /a?b HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
  assert.equal(request(CHUNKED), "POST /a?b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
});

test("renderRequestHead() nominates an upgrade that was left in", () => {
  assert.equal(
    request(NONE, field("Connection", "close"), field("Upgrade", "websocket")),
    "POST /a?b HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
  );
});

test("renderRequestHead() throws rather than write a line that is more than one", () => {
  const bad = [
    ["GET /x HTTP/1.1\r\nX:", "/"],
    ["", "/"],
    ["GET", ""],
    ["GET", "/a b"],
    ["GET", "/\r\nX: y"],
    ["GET", "/\0"],
    ["GET", "/\u0120"],
  ] as const;
  for (const [method, target] of bad) {
    assert.throws(
      () => renderRequestHead({ method, target, minor: 1, fields: [] }, NONE),
      failure("E_INTERNAL"),
    );
  }
  assert.throws(() => request(CLOSE), failure("E_INTERNAL"));
  assert.throws(() => request(NONE, field("X", "a\r\nY: b")), failure("E_INTERNAL"));
});

test("renderResponseHead() writes the status line, fields and framing", () => {
  assert.equal(response(200, FIVE, [field("A", "b")]), "HTTP/1.1 200 X\r\nA: b\r\nContent-Length: 5\r\n\r\n");
  assert.equal(response(200, CHUNKED), "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n");
  const empty = { status: 200, phrase: "", minor: 1, fields: [] } as const;
  assert.equal(renderResponseHead(empty, NONE, { close: false, minor: 1 }), "HTTP/1.1 200 \r\n\r\n");
});

test("I19 renderResponseHead() says what becomes of the connection", () => {
  assert.match(response(200, FIVE, [], { close: true }), /\r\nConnection: close\r\n\r\n$/);
  assert.match(response(200, CLOSE), /\r\nConnection: close\r\n\r\n$/);
  assert.match(response(200, CLOSE, [], { minor: 0 }), /\r\nConnection: close\r\n\r\n$/);
  assert.match(response(200, FIVE, [], { minor: 0 }), /\r\nConnection: keep-alive\r\n\r\n$/);
  assert.doesNotMatch(response(200, FIVE), /Connection/);
  assert.match(
    response(426, FIVE, [field("Upgrade", "websocket")], { close: true }),
    /\r\nConnection: close, Upgrade\r\n\r\n$/,
  );
});

test("I03 I14 renderResponseHead() leaves interim responses without framing", () => {
  const length = field("Content-Length", "0");
  assert.equal(response(103, NONE, [length], { close: true }), "HTTP/1.1 103 X\r\n\r\n");
  assert.equal(
    response(101, NONE, [field("Upgrade", "websocket")]),
    "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
  );
});

test("renderResponseHead() keeps the length of a body that is not sent, save on 204", () => {
  const length = field("Content-Length", "5");
  assert.equal(response(200, NONE, [length]), "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n");
  assert.equal(response(304, NONE, [length]), "HTTP/1.1 304 X\r\nContent-Length: 5\r\n\r\n");
  assert.equal(response(204, NONE, [length]), "HTTP/1.1 204 X\r\n\r\n");
});

test("renderResponseHead() throws rather than write what a client would misread", () => {
  for (const status of [99, 600, 200.5, Number.NaN]) {
    assert.throws(() => response(status, NONE), failure("E_INTERNAL"));
  }
  for (const status of [100, 101, 204, 304]) {
    assert.throws(() => response(status, FIVE), failure("E_INTERNAL"));
    assert.throws(() => response(status, CHUNKED), failure("E_INTERNAL"));
  }
  assert.throws(() => response(200, CHUNKED, [], { minor: 0 }), failure("E_INTERNAL"));
  const split = { status: 200, phrase: "OK\r\nX: y", minor: 1, fields: [] } as const;
  assert.throws(() => renderResponseHead(split, NONE, { close: false, minor: 1 }), failure("E_INTERNAL"));
});

test("BodyWriter sends a head and a small body in one write", () => {
  const to = sink();
  const writer = new BodyWriter(FIVE, to);
  writer.head("HEAD\r\n\r\n");
  assert.equal(writer.write(Buffer.from("he")), true);
  assert.equal(writer.write(Buffer.from("llo")), true);
  writer.end([]);
  assert.deepEqual(to.texts, ["HEAD\r\n\r\nhello"]);
});

test("BodyWriter sends what it holds back in a microtask, once", async () => {
  const to = sink();
  const writer = new BodyWriter(CLOSE, to);
  writer.head("HEAD");
  writer.write(Buffer.from("a"));
  assert.deepEqual(to.texts, []);
  await microtask();
  assert.deepEqual(to.texts, ["HEADa"]);
  writer.write(Buffer.from("b"));
  await microtask();
  await microtask();
  assert.deepEqual(to.texts, ["HEADa", "b"]);
});

test("BodyWriter.head() may come several times, interim heads first", () => {
  const to = sink();
  const writer = new BodyWriter(NONE, to);
  writer.head("103\r\n\r\n");
  writer.head("200\r\n\r\n");
  writer.end([]);
  assert.deepEqual(to.texts, ["103\r\n\r\n200\r\n\r\n"]);
});

test("BodyWriter passes large data on uncopied, after the head", () => {
  const to = sink(true, false);
  const large = Buffer.alloc(16_385, "x");
  const writer = new BodyWriter({ kind: "length", length: 16_385 }, to);
  writer.head("HEAD");
  assert.equal(writer.write(large), false);
  assert.deepEqual([to.writes.length, to.texts[0], to.writes[1] === large], [2, "HEAD", true]);
});

test("BodyWriter passes a lone piece on uncopied", () => {
  const to = sink();
  const piece = Buffer.from("hello");
  const writer = new BodyWriter(FIVE, to);
  writer.write(piece);
  writer.flush();
  assert.equal(to.writes[0], piece);
});

test("BodyWriter does not hold back more than one record's worth", () => {
  const to = sink();
  const writer = new BodyWriter({ kind: "length", length: 24_000 }, to);
  writer.write(Buffer.alloc(8_000));
  writer.write(Buffer.alloc(8_000));
  assert.equal(to.writes.length, 0);
  writer.write(Buffer.alloc(8_000));
  assert.deepEqual(
    to.writes.map((bytes) => bytes.length),
    [24_000],
  );
});

test("BodyWriter asks a full sink at once, so that its answer is never stale", async () => {
  const to = sink(false, false, true);
  const writer = new BodyWriter(CLOSE, to);
  assert.equal(writer.write(Buffer.from("a")), true);
  await microtask();
  assert.equal(writer.write(Buffer.from("b")), false);
  assert.equal(writer.write(Buffer.from("c")), true);
  assert.deepEqual(to.texts, ["a", "b", "c"]);
  assert.equal(writer.write(Buffer.from("d")), true);
  assert.deepEqual(to.texts, ["a", "b", "c"]);
});

test("BodyWriter frames chunks, joins small ones, and ends with the last chunk", async () => {
  const to = sink();
  const writer = new BodyWriter(CHUNKED, to);
  writer.head("HEAD");
  writer.write(Buffer.from("hello, "));
  writer.write(Buffer.from("world!!!!"));
  await microtask();
  writer.write(Buffer.alloc(20_000, "x"));
  writer.write(Buffer.from("end"));
  writer.end([]);
  assert.deepEqual(to.texts, [
    "HEAD10\r\nhello, world!!!!\r\n",
    `4e20\r\n${"x".repeat(20_000)}\r\n`,
    "3\r\nend\r\n0\r\n\r\n",
  ]);
});

test("BodyWriter never writes an empty chunk before the end", async () => {
  const to = sink(false);
  const writer = new BodyWriter(CHUNKED, to);
  assert.equal(writer.write(Buffer.alloc(0)), true);
  writer.flush();
  await microtask();
  assert.deepEqual(to.texts, []);
  writer.end([]);
  assert.deepEqual(to.texts, ["0\r\n\r\n"]);
});

test("I05 BodyWriter.end() writes trailers after chunks, without those that may not stand there", () => {
  const to = sink();
  new BodyWriter(CHUNKED, to).end([field("X-Sum", "a"), field("Content-Length", "5")]);
  assert.deepEqual(to.texts, ["0\r\nX-Sum: a\r\n\r\n"]);
  const plain = sink();
  new BodyWriter(CLOSE, plain).end([field("X-Sum", "a")]);
  assert.deepEqual(plain.texts, []);
});

test("BodyWriter.end() throws rather than write a trailer that is more than one", () => {
  const to = sink();
  assert.throws(() => new BodyWriter(CHUNKED, to).end([field("X", "a\r\n\r\n")]), failure("E_INTERNAL"));
  assert.deepEqual(to.texts, []);
});

test("BodyWriter refuses more bytes than its length before one leaves", async () => {
  const to = sink();
  const writer = new BodyWriter(FIVE, to);
  assert.throws(() => writer.write(Buffer.from("hello!")), failure("E_INTERNAL"));
  assert.throws(() => writer.write(Buffer.alloc(50_000)), failure("E_INTERNAL"));
  await microtask();
  assert.deepEqual(to.texts, []);
});

test("E11 BodyWriter.end() refuses to end before the length, and anything after the end", () => {
  const to = sink();
  const writer = new BodyWriter(FIVE, to);
  writer.write(Buffer.from("hell"));
  assert.throws(() => writer.end([]), failure("E_INTERNAL"));
  writer.write(Buffer.from("o"));
  writer.end([]);
  assert.throws(() => writer.end([]), failure("E_INTERNAL"));
  assert.throws(() => writer.write(Buffer.alloc(0)), failure("E_INTERNAL"));
  assert.throws(() => writer.head("HEAD"), failure("E_INTERNAL"));
  assert.deepEqual(to.texts, ["hello"]);
});

test("BodyWriter refuses a body where none was declared", () => {
  const writer = new BodyWriter(NONE, sink());
  assert.equal(writer.write(Buffer.alloc(0)), true);
  assert.throws(() => writer.write(Buffer.from("a")), failure("E_INTERNAL"));
});

test("BodyWriter.discard() forgets what is held back and takes no more", async () => {
  const to = sink();
  const writer = new BodyWriter(CHUNKED, to);
  writer.head("HEAD");
  writer.write(Buffer.from("a"));
  writer.discard();
  writer.flush();
  await microtask();
  assert.deepEqual(to.texts, []);
  assert.throws(() => writer.end([]), failure("E_INTERNAL"));
});
