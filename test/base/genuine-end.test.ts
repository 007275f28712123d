/** An end counts where END_STREAM was sent, and not where a reset makes one up. */
import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { watchEnd } from "../../src/base/genuine-end.ts";

class FakeStream extends Duplex {
  override closed = false;

  override _read(): void {}
}

test("watchEnd: an end that comes while the stream is open is genuine", () => {
  const stream = new FakeStream();
  const ending = watchEnd(stream, false);
  stream.push(Buffer.from("x"));
  assert.equal(ending.genuine, false);
  stream.push(null);
  assert.equal(ending.genuine, true);
});

test("watchEnd: an end of a stream that was closed before is made up", () => {
  const stream = new FakeStream();
  const ending = watchEnd(stream, false);
  stream.closed = true;
  stream.push(null);
  assert.equal(ending.genuine, false);
});

test("watchEnd: an end that came before anybody watched counts, unless the stream is closed already", () => {
  const stream = new FakeStream();
  stream.push(null);
  assert.equal(watchEnd(stream, false).genuine, true);
  stream.closed = true;
  assert.equal(watchEnd(stream, false).genuine, false);
  assert.equal(watchEnd(stream, true).genuine, true);
});

test("watchEnd: what is pushed arrives as before", async () => {
  const stream = new FakeStream();
  watchEnd(stream, false);
  stream.push("h\u00e9", "latin1");
  stream.push(null);
  assert.deepEqual(Buffer.concat(await stream.toArray()), Buffer.from("h\u00e9", "latin1"));
});
