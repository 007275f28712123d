import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Failure } from "../../src/model/failure.ts";
import { openSink, reopenSink, type Sink } from "../../src/record/sink.ts";

let dir = "";
before(() => {
  dir = mkdtempSync(join(tmpdir(), "sallyport-sink-"));
});
after(() => rmSync(dir, { recursive: true }));

function write(sink: Sink, text: string): Promise<string | number> {
  return new Promise((resolve) => {
    sink.write(Buffer.from(text), (error, written) => resolve(error?.code ?? written));
  });
}

test("write gives a pipe whole lines in pieces that stay together, and stops where it is full", async () => {
  const path = join(dir, "fifo");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const sink = openSink(path);
  const long = `${"z".repeat(5_000)}\n`;
  const text = `${`${"x".repeat(999)}\n`.repeat(30)}${long}${`${"y".repeat(999)}\n`.repeat(100)}`;
  const written = await write(sink, text);
  assert.ok(typeof written === "number" && written > 35_000 && written < text.length, `${written}`);
  assert.equal(text[written - 1], "\n");
  assert.equal(await write(sink, text), "EAGAIN");
  const chunk = Buffer.alloc(text.length);
  assert.equal(chunk.toString("latin1", 0, readSync(reader, chunk)), text.slice(0, written));
  sink.close();
  closeSync(reader);
});

test("openSink fails with the path, the kind of trouble and what is needed", () => {
  assert.throws(
    () => openSink(join(dir, "no", "such")),
    (error) =>
      error instanceof Failure &&
      error.code === "E_CONFIG" &&
      error.fault === "operator" &&
      /^The records file \/.*\/no\/such cannot be opened \(ENOENT\); records\.file needs a folder/.test(
        error.message,
      ),
  );
});

test("reopenSink appends to what is there and answers undefined where it cannot", async () => {
  const path = join(dir, "b");
  const first = openSink(path);
  assert.equal(await write(first, "one\n"), 4);
  const second = await reopenSink(path);
  assert.ok(second);
  assert.equal(await write(second, "two\n"), 4);
  first.close();
  second.close();
  assert.equal(readFileSync(path, "latin1"), "one\ntwo\n");
  assert.equal(await reopenSink(join(dir, "no", "such")), undefined);
});

test("write reports a full disk", async () => {
  const sink = openSink("/dev/full");
  assert.equal(await write(sink, "lost\n"), "ENOSPC");
  sink.close();
});
