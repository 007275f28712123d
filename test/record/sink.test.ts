import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
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

test("openSink takes large batches to a file and small ones to anything else", () => {
  const file = openSink(join(dir, "a"));
  const device = openSink("/dev/null");
  assert.equal(file.batchBytes, 65_536);
  assert.equal(device.batchBytes, 4_096);
  file.close();
  device.close();
});

test("openSink fails with the kind of trouble and without the path", () => {
  assert.throws(
    () => openSink(join(dir, "no", "such")),
    (error) =>
      error instanceof Failure &&
      error.code === "E_CONFIG" &&
      error.fault === "operator" &&
      error.message === "The records file cannot be opened (ENOENT)",
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
