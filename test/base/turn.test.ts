import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurn } from "../../src/base/turn.ts";

test("hold: corks a socket once, and uncorks every one at the end of the turn", () => {
  const { turn, end, ends } = make();
  const [one, other] = [socket(), socket()];
  turn.hold(one);
  turn.hold(one);
  turn.hold(other);
  assert.deepEqual([one.writableCorked, other.writableCorked, ends()], [1, 1, 1]);
  end();
  assert.deepEqual([one.writableCorked, other.writableCorked], [0, 0]);
});

test("hold: leaves a socket alone that somebody else has corked", () => {
  const { turn, ends } = make();
  const corked = socket();
  corked.cork();
  turn.hold(corked);
  assert.deepEqual([corked.writableCorked, ends()], [1, 0]);
});

test("hold: a socket that is held while the turn ends waits for the end of the next", () => {
  const { turn, end, ends } = make();
  const late = socket();
  const first = socket(() => turn.hold(late));
  turn.hold(first);
  end();
  assert.deepEqual([late.writableCorked, ends()], [1, 2]);
  end();
  assert.equal(late.writableCorked, 0);
});

function make() {
  const tasks: (() => void)[] = [];
  let asked = 0;
  const turn = createTurn((task) => {
    asked += 1;
    tasks.push(task);
  });
  return { turn, ends: () => asked, end: () => tasks.shift()?.() };
}

function socket(onUncork: () => void = () => {}) {
  return {
    writableCorked: 0,
    cork() {
      this.writableCorked += 1;
    },
    uncork() {
      this.writableCorked -= 1;
      onUncork();
    },
  };
}
