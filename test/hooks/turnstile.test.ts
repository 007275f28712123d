import assert from "node:assert/strict";
import { test } from "node:test";
import { createTurnstile } from "../../src/hooks/turnstile.ts";

const NEVER = new AbortController().signal;

test("createTurnstile: only so many are inside at once, and the others come in their order", async () => {
  const turnstile = createTurnstile(2, 10);
  const releases: (() => void)[] = [];
  const entered: number[] = [];
  const all = [0, 1, 2, 3].map((index) =>
    turnstile.pass(NEVER, () => {
      entered.push(index);
      return new Promise<number>((resolve) => releases.push(() => resolve(index)));
    }),
  );
  await new Promise(setImmediate);
  assert.deepEqual(entered, [0, 1]);
  for (let index = 0; index < 4; index += 1) {
    releases[index]?.();
    await all[index];
    await new Promise(setImmediate);
  }
  assert.deepEqual(entered, [0, 1, 2, 3]);
});

test("createTurnstile: whoever finds too many waiting, or gives up, does not get in", async () => {
  const turnstile = createTurnstile(1, 1);
  let release = (): void => undefined;
  const first = turnstile.pass(
    NEVER,
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  const controller = new AbortController();
  const second = turnstile.pass(controller.signal, () => Promise.resolve());
  await assert.rejects(
    turnstile.pass(NEVER, () => Promise.resolve()),
    /Too many/,
  );
  controller.abort();
  await assert.rejects(second, /Nobody waits/);
  await assert.rejects(
    turnstile.pass(controller.signal, () => Promise.resolve()),
    /Nobody waits/,
  );
  release();
  await first;
  assert.equal(await turnstile.pass(NEVER, () => Promise.resolve("in")), "in");
});

test("createTurnstile: a step that fails leaves its place to the next", async () => {
  const turnstile = createTurnstile(1, 1);
  await assert.rejects(
    turnstile.pass(NEVER, () => Promise.reject(new Error("failed"))),
    /failed/,
  );
  assert.equal(await turnstile.pass(NEVER, () => Promise.resolve(1)), 1);
});
