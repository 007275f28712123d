import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sink } from "../../src/record/sink.ts";
import { createRecordWriter } from "../../src/record/writer.ts";

const MIB = 1_048_576;
const ignore = () => undefined;

function line(at: number, length = 300): string {
  return `{"seq":${at},"fill":"${"x".repeat(length)}"}\n`;
}

function seqs(text: string): number[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((each) => (JSON.parse(each) as { seq: number }).seq);
}

/** A sink whose writes end when the test says so. */
function heldSink(): Sink & {
  finish(error: string | null, written: number): void;
  closed: boolean;
  text: string;
} {
  let done: Parameters<Sink["write"]>[1] = ignore;
  let bytes: Buffer = Buffer.alloc(0);
  return {
    batchBytes: 4_096,
    closed: false,
    text: "",
    write: (given, callback) => {
      bytes = given;
      done = callback;
    },
    finish(error, written) {
      this.text += bytes.toString("latin1", 0, written);
      done(error === null ? null : Object.assign(new Error(error), { code: error }), written);
    },
    close() {
      this.closed = true;
    },
  };
}

test("reopen takes whole lines along, and drops and counts one whose beginning the old file has", async () => {
  const [old, next] = [heldSink(), heldSink()];
  const opening = { open: () => old, reopen: async () => next };
  const writer = createRecordWriter({ file: "x", bufferBytes: MIB, onDrop: ignore }, opening);
  for (const at of [0, 1, 2]) {
    writer.write(line(at, 1_000));
  }
  await sleep(30);
  assert.equal(await writer.reopen(), true);
  assert.equal(old.closed, false);
  old.finish(null, 10);
  assert.equal(old.closed, true);
  assert.equal(writer.dropped, 1);
  next.finish(null, 2 * line(1, 1_000).length);
  assert.deepEqual(seqs(next.text), [1, 2]);
  await writer.close();
});

test("reopen after a torn last line leaves nothing to write", async () => {
  const [old, next] = [heldSink(), heldSink()];
  const opening = { open: () => old, reopen: async () => next };
  const writer = createRecordWriter({ file: "x", bufferBytes: MIB, onDrop: ignore }, opening);
  writer.write(line(0));
  await sleep(30);
  await writer.reopen();
  old.finish(null, 10);
  assert.equal(writer.dropped, 1);
  await writer.close();
  assert.equal(next.text, "");
});

test("close leaves a write that never ends behind, and closes its file when it does end", async () => {
  const [old, next] = [heldSink(), heldSink()];
  const opening = { open: () => old, reopen: () => sleep(10, next) };
  const writer = createRecordWriter({ file: "x", bufferBytes: MIB, onDrop: ignore }, opening);
  writer.write(line(0));
  await sleep(30);
  const reopened = writer.reopen();
  await writer.close();
  await reopened;
  assert.equal(writer.dropped, 1);
  assert.equal(next.closed, true);
  old.finish(null, 10);
  assert.equal(old.closed, true);
});

test("close does not use a file that a rotation opens too late", async () => {
  const [old, next] = [heldSink(), heldSink()];
  const opening = { open: () => old, reopen: () => sleep(10, next) };
  const writer = createRecordWriter({ file: "x", bufferBytes: MIB, onDrop: ignore }, opening);
  const reopened = writer.reopen();
  await writer.close();
  assert.equal(await reopened, true);
  assert.deepEqual([old.closed, next.closed], [true, true]);
});
