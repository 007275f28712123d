import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { scrubStage } from "../../src/forward/scrub-stage.ts";
import type { FieldLines } from "../../src/model/exchange.ts";
import type { Failure } from "../../src/model/failure.ts";

const TRAILERS: FieldLines = [{ name: "T", key: "t", value: "1" }];
/** Keeps the last byte back until the end, and writes all in upper case. */
function upper() {
  let kept = Buffer.alloc(0);
  return {
    push(piece: Buffer): Buffer {
      const all = Buffer.concat([kept, piece]);
      kept = all.subarray(-1);
      return Buffer.from(all.subarray(0, -1).toString("latin1").toUpperCase());
    },
    flush: () => Buffer.from(kept.toString("latin1").toUpperCase()),
  };
}

const ROOM = { take: () => true, release: () => undefined };

function begin(decode: Parameters<typeof scrubStage>[1], takes = true, room = ROOM) {
  const { promise, resolve } = Promise.withResolvers<FieldLines | Failure>();
  const pieces: Buffer[] = [];
  const log: string[] = [];
  const parts = { takes };
  const stage = scrubStage(
    upper(),
    decode,
    () => room,
  )(
    {
      write(bytes) {
        pieces.push(bytes);
        log.push("write");
        return parts.takes;
      },
      end: resolve,
    },
    { drained: () => void log.push("drained"), failed: resolve },
  );
  return { stage, done: promise, log, parts, text: () => Buffer.concat(pieces).toString() };
}

test("scrubStage passes an uncoded body in the same turn, and asks its sink whether to go on", async () => {
  const { stage, done, log, text } = begin([], false);
  assert.equal(stage.write(Buffer.from("a")), true, "nothing left yet");
  assert.equal(stage.write(Buffer.from("bc")), false);
  stage.drained();
  assert.deepEqual(log, ["write", "drained"]);
  stage.end(TRAILERS);
  stage.close();
  assert.equal(await done, TRAILERS);
  assert.equal(text(), "ABC");
});

test("scrubStage ends an empty body, coded or not", async () => {
  for (const decode of [[], ["gzip"]] as const) {
    const { stage, done, text } = begin(decode);
    stage.write(Buffer.alloc(0));
    stage.end(TRAILERS);
    assert.equal(await done, TRAILERS);
    assert.equal(text(), "");
  }
});

const BODY = "Some text, again and again. ".repeat(20_000);
const CODED = [
  { name: "gzip", decode: ["gzip"], bytes: gzipSync(BODY) },
  { name: "deflate with a zlib header", decode: ["deflate"], bytes: deflateSync(BODY) },
  { name: "deflate without one", decode: ["deflate"], bytes: deflateRawSync(BODY) },
  { name: "br", decode: ["br"], bytes: brotliCompressSync(BODY) },
  { name: "zstd", decode: ["zstd"], bytes: zstdCompressSync(BODY) },
  { name: "gzip in br", decode: ["br", "gzip"], bytes: brotliCompressSync(gzipSync(BODY)) },
] as const;

for (const { name, decode, bytes } of CODED) {
  test(`scrubStage decodes ${name}, in pieces, for a sink that takes its time`, async () => {
    const { stage, done, parts, text } = begin(decode, false);
    for (let at = 0; at < bytes.length; at += 1_000) stage.write(bytes.subarray(at, at + 1_000));
    stage.end(TRAILERS);
    parts.takes = true;
    const timer = setInterval(() => stage.drained(), 1);
    assert.equal(await done, TRAILERS);
    clearInterval(timer);
    assert.equal(text(), BODY.toUpperCase());
    stage.close();
  });

  test(`scrubStage fails where ${name} is cut`, async () => {
    const { stage, done } = begin(decode);
    stage.write(bytes.subarray(0, bytes.length - 5));
    stage.end([]);
    const failure = await done;
    assert.ok("code" in failure);
    assert.equal(failure.code, "E_UPSTREAM_PROTOCOL");
    stage.close();
    stage.drained();
  });
}

test("scrubStage takes no more than the sink does, and says when it takes more", async () => {
  const { stage, done, log, parts } = begin(["gzip"], false);
  const member = gzipSync(Buffer.alloc(50_000_000));
  const bomb = Buffer.concat([member, member]);
  assert.equal(stage.write(bomb), false);
  stage.end([]);
  await new Promise((resolve) => setImmediate(resolve));
  while (!log.includes("write")) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(log.filter((entry) => entry === "write").length < 4, "what grows waits");
  parts.takes = true;
  stage.drained();
  await done;
  stage.close();
});

test("scrubStage is silent once it is closed", async () => {
  const { stage, log } = begin(["gzip"]);
  stage.write(gzipSync(BODY).subarray(0, 100));
  stage.close();
  assert.equal(stage.write(Buffer.from("x")), true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(log, []);
});

test("scrubStage takes a window of 8 MiB from a zstd body, and no greater one", async () => {
  const body = Buffer.alloc(12_000_000, "a line of a large file\n");
  for (const [log, whole] of [
    [23, true],
    [27, false],
  ] as const) {
    const params = { [constants.ZSTD_c_windowLog]: log };
    const coded = zstdCompressSync(body, { params });
    const { stage, done } = begin(["zstd"]);
    stage.write(coded);
    stage.end(TRAILERS);
    const end = await done;
    assert.equal(end === TRAILERS, whole, String(log));
    if (!whole) assert.equal((end as Failure).code, "E_UPSTREAM_PROTOCOL");
  }
});

test("scrubStage counts what decoders keep, up to their windows, and breaks off where there is no room", async () => {
  for (const [most, whole] of [
    [65_536, true],
    [65_535, false],
  ] as const) {
    let left: number = most;
    const room = {
      take(bytes: number) {
        left -= bytes;
        return left >= 0;
      },
      release() {
        left = most;
      },
    };
    const body = gzipSync(gzipSync(randomBytes(200_000)));
    const { stage, done } = begin(["gzip", "gzip"], true, room as typeof ROOM);
    stage.write(body);
    stage.end(TRAILERS);
    const end = await done;
    assert.equal(end === TRAILERS, whole, String(end));
    stage.close();
    assert.equal(left, most);
  }
});
