import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteCursor } from "../../src/wire/byte-cursor.ts";
import { failure } from "./support.ts";

test("ByteCursor reads numbers and vectors in order", () => {
  const cursor = new ByteCursor(Buffer.from([1, 2, 3, 1, 9, 0, 2, 8, 7, 6]));
  assert.equal(cursor.uint8(), 1);
  assert.equal(cursor.uint16(), 0x0203);
  assert.deepEqual([...cursor.vector8()], [9]);
  assert.deepEqual([...cursor.vector16()], [8, 7]);
  assert.equal(cursor.ended, false);
  assert.throws(() => cursor.end(), failure("E_BAD_HELLO"));
  assert.deepEqual([...cursor.take(1)], [6]);
  assert.equal(cursor.ended, true);
  cursor.end();
});

test("ByteCursor fails rather than read past the end", () => {
  const bytes = Buffer.from([5, 0, 1]);
  assert.throws(() => new ByteCursor(bytes).take(4), failure("E_BAD_HELLO"));
  assert.throws(() => new ByteCursor(bytes).vector8(), failure("E_BAD_HELLO"));
  assert.throws(() => new ByteCursor(bytes).vector16(), failure("E_BAD_HELLO"));
  assert.throws(() => new ByteCursor(bytes.subarray(0, 1)).uint16(), failure("E_BAD_HELLO"));
  assert.throws(() => new ByteCursor(bytes.subarray(0, 0)).uint8(), failure("E_BAD_HELLO"));
});
