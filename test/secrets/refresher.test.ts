/** One at a time, ahead of time, and after a failure not at once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRefresher, type Fetched } from "../../src/secrets/refresher.ts";

function harness() {
  const clock = { time: 0 };
  const calls: { resolve(fetched: Fetched): void; reject(error: unknown): void }[] = [];
  const problems: string[] = [];
  const refresher = createRefresher({
    now: () => clock.time,
    failed: (problem) => problems.push(problem),
    fetch: () => new Promise((resolve, reject) => calls.push({ resolve, reject })),
  });
  return { clock, calls, problems, refresher };
}

function whenKnown(refresher: ReturnType<typeof harness>["refresher"]): Promise<void> {
  const reading = refresher.read();
  assert.ok(!reading.ok && reading.whenKnown !== undefined);
  return reading.whenKnown();
}

test("read: nobody asks before somebody needs it, and all who wait share one call", async () => {
  const { calls, refresher } = harness();
  assert.equal(refresher.read(), refresher.read());
  assert.equal(calls.length, 0);
  const waits = [whenKnown(refresher), whenKnown(refresher)];
  calls[0]?.resolve({ value: "one", lifetime: 1_000_000 });
  await Promise.all(waits);
  assert.equal(calls.length, 1);
  assert.deepEqual(refresher.read(), { ok: true, value: "one" });
});

test("read: refreshed ahead of time, the old one used meanwhile, none after its end", async () => {
  const { clock, calls, refresher } = harness();
  const first = whenKnown(refresher);
  calls[0]?.resolve({ value: "one", lifetime: 1_000_000 });
  await first;
  clock.time = 699_999;
  refresher.read();
  assert.equal(calls.length, 1);
  clock.time = 750_000;
  const one = refresher.read();
  assert.deepEqual([one, calls.length], [{ ok: true, value: "one" }, 2]);
  calls[1]?.resolve({ value: "one", lifetime: 1_000_000 });
  await new Promise(setImmediate);
  assert.equal(refresher.read(), one);
  clock.time = 1_740_000;
  const last = whenKnown(refresher);
  calls[2]?.resolve({ value: "two", lifetime: 1_000 });
  await last;
  assert.deepEqual(refresher.read(), { ok: true, value: "two" });
});

test("read: after a failure there is a pause, which doubles up to a minute; a success ends it", async () => {
  const { clock, calls, problems, refresher } = harness();
  for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    const tried = whenKnown(refresher);
    calls.at(-1)?.reject(pause === 2_000 ? "no error" : new Error("broken"));
    await tried;
    const failed = refresher.read();
    assert.ok(!failed.ok && failed.whenKnown === undefined);
    clock.time += pause - 1;
    assert.equal(refresher.read(), failed);
    clock.time += 1;
  }
  assert.deepEqual(problems.slice(0, 2), ["broken", "It could not be had"]);
  const tried = whenKnown(refresher);
  calls.at(-1)?.resolve({ value: "v", lifetime: 1_000 });
  await tried;
  assert.equal(refresher.read().ok, true);
});
