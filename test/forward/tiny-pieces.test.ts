import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurn } from "../../src/base/turn.ts";
import { TinyPieces } from "../../src/forward/tiny-pieces.ts";

function begin() {
  const tasks: (() => void)[] = [];
  const written: string[] = [];
  const turn = createTurn((task) => void tasks.push(task));
  const pieces = new TinyPieces(turn, (bytes) => void written.push(bytes.toString()));
  return { pieces, written, endTurn: () => tasks.splice(0).forEach((task) => void task()) };
}

function send(pieces: TinyPieces, text: string, times = 1): void {
  for (let at = 0; at < times; at++) pieces.take(Buffer.from(text));
}

test("TinyPieces lets a few tiny pieces and all large ones pass at once", () => {
  const { pieces, written } = begin();
  const large = "x".repeat(300);
  for (let at = 0; at < 5; at++) {
    send(pieces, "a", 16);
    send(pieces, large);
  }
  assert.equal(written.length, 5 * 17);
});

test("TinyPieces puts a run together until the turn ends, or a large piece or the end comes", () => {
  const { pieces, written, endTurn } = begin();
  send(pieces, "a", 20);
  assert.equal(written.length, 16);
  endTurn();
  assert.equal(written.at(-1), "aaaa");
  send(pieces, "b", 3);
  send(pieces, "x".repeat(256));
  assert.deepEqual(written.slice(-2), ["bbb", "x".repeat(256)]);
  send(pieces, "c", 18);
  pieces.flush();
  assert.equal(written.at(-1), "cc");
  const before = written.length;
  endTurn();
  assert.equal(written.length, before);
});

test("TinyPieces gathers no more than 16 KiB", () => {
  const { pieces, written } = begin();
  send(pieces, "a", 16 + 16_384 + 1);
  assert.deepEqual([written.length, written.at(-1)?.length], [17, 16_384]);
});
