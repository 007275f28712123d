/** Streams share their listeners; each tells its own owner until it is closed. */
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { endClosed, own, readBody, type StreamOwner } from "../../src/base/stream-owner.ts";

test("own: each stream tells its owner what happens, and the body once that is read", () => {
  const [one, other] = [new EventEmitter(), new EventEmitter()];
  const [told, toldOther] = [owner(), owner()];
  own(one, told, ["headers", "response", "aborted", "trailers", "drain", "wantTrailers"]);
  own(other, toldOther, ["drain"]);
  one.emit("data", Buffer.from("early"));
  readBody(one);
  one.emit("headers", {}, 4, [":status", "103"]);
  one.emit("response", { a: 1 }, 5, [":status", "200"]);
  one.emit("data", Buffer.from("x"));
  one.emit("drain");
  one.emit("trailers", {}, 5, ["a", "b"]);
  one.emit("end");
  one.emit("wantTrailers");
  one.emit("aborted");
  other.emit("response", {}, 5, [":status", "200"]);
  other.emit("drain");
  assert.deepEqual(told.heard, [
    "interim :status,103",
    'response :status,200 5 {"a":1}',
    "data x",
    "drain",
    "trailers a,b",
    "end",
    "wantTrailers",
    "aborted",
  ]);
  assert.deepEqual(toldOther.heard, ["drain"], "it did not ask for responses");
});

test("own: an error is heard and told at close alone, after which nothing is", () => {
  const stream = new EventEmitter();
  const told = owner();
  own(stream, told, ["drain"]);
  stream.emit("error", new Error("broken"));
  assert.deepEqual(told.heard, []);
  stream.emit("close");
  stream.emit("drain");
  stream.emit("error", new Error("late"));
  stream.emit("close");
  assert.deepEqual(told.heard, ["close"]);
});

test("own: all streams share their listeners", () => {
  const [one, other] = [new EventEmitter(), new EventEmitter()];
  for (const stream of [one, other]) {
    own(stream, owner(), ["aborted"]);
    readBody(stream);
  }
  for (const event of one.eventNames()) assert.deepEqual(one.listeners(event), other.listeners(event));
});

test("endClosed: a stream of node:http2 that was reset without an error closes, whatever it still had to write", {
  timeout: 10_000,
}, async () => {
  const server = createServer();
  server.on("stream", (stream) => void stream.on("error", () => undefined).pause());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = session.request({ ":method": "POST" }, { endStream: false });
  stream.on("error", () => undefined);
  await once(session, "remoteSettings");
  stream.write(Buffer.alloc(200_000));
  stream.close(0);
  const closed = once(stream, "close");
  endClosed(stream.resume());
  await closed;
  session.destroy();
  server.close();
});

test("endClosed: all others end by themselves", () => {
  let destroyed = 0;
  const stream = { rstCode: 0, writableFinished: false, destroyed: false, destroy: () => (destroyed += 1) };
  endClosed({ ...stream, rstCode: 8 });
  endClosed({ ...stream, writableFinished: true });
  endClosed({ ...stream, destroyed: true });
  assert.equal(destroyed, 0);
  endClosed(stream);
  assert.equal(destroyed, 1);
});

function owner(): Required<StreamOwner> & { readonly heard: readonly string[] } {
  const heard: string[] = [];
  return {
    heard,
    onData: (bytes) => void heard.push(`data ${bytes}`),
    onEnd: () => void heard.push("end"),
    onTrailers: (pairs) => void heard.push(`trailers ${pairs}`),
    onDrain: () => void heard.push("drain"),
    onWantTrailers: () => void heard.push("wantTrailers"),
    onClose: () => void heard.push("close"),
    onResponse: (pairs, flags, fields) =>
      void heard.push(`response ${pairs} ${flags} ${JSON.stringify(fields)}`),
    onInterim: (pairs) => void heard.push(`interim ${pairs}`),
    onAborted: () => void heard.push("aborted"),
  };
}
