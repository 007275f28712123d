import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedStep } from "../../src/forward/shared-step.ts";

interface Run {
  readonly signal: AbortSignal;
  readonly resolve: (value: string) => void;
  readonly reject: (error: unknown) => void;
}

function recorded(): { readonly runs: Run[]; step(signal: AbortSignal): Promise<string> } {
  const runs: Run[] = [];
  const step = (signal: AbortSignal): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    runs.push({ signal, resolve, reject });
    return promise;
  };
  return { runs, step };
}

test("SharedStep runs once for all who wait for one key, and anew for whoever comes later", async () => {
  const shared = new SharedStep<string>();
  const { runs, step } = recorded();
  const { signal } = new AbortController();
  const both = [shared.join("key", signal, step), shared.join("key", signal, step)];
  const other = shared.join("other", signal, step);
  assert.equal(runs.length, 2);
  runs[0]?.resolve("first");
  runs[1]?.resolve("second");
  assert.deepEqual(await Promise.all([...both, other]), ["first", "first", "second"]);
  const later = shared.join("key", signal, step);
  runs[2]?.reject(new Error("third"));
  await assert.rejects(later, /third/);
});

test("SharedStep goes on while anybody waits, and ends with the last", async () => {
  const shared = new SharedStep<string>();
  const { runs, step } = recorded();
  const [one, other] = [new AbortController(), new AbortController()];
  const first = shared.join("key", one.signal, step);
  const second = shared.join("key", other.signal, step);
  one.abort(new Error("one left"));
  await assert.rejects(first, /one left/);
  assert.equal(runs[0]?.signal.aborted, false);
  other.abort(new Error("all left"));
  await assert.rejects(second, /all left/);
  assert.equal(runs[0]?.signal.aborted, true);
  // Whoever comes now does not get what was given up.
  const third = shared.join("key", new AbortController().signal, step);
  assert.equal(runs.length, 2);
  runs[1]?.resolve("fresh");
  assert.equal(await third, "fresh");
  await assert.rejects(shared.join("key", AbortSignal.abort(new Error("gone")), step), /gone/);
});
