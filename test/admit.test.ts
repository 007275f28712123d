import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { admit } from "../src/admit.ts";
import type { Recorder } from "../src/model/record.ts";
import { createPair } from "./support/loopback.ts";
import { createWorld } from "./support/world.ts";

test("admit counts a connection until it closes, and resets one too many", async (context) => {
  const { world } = createWorld(context, {}, { limits: { connections: 1 } });
  const counted: string[] = [];
  const recorder: Recorder = {
    ...world.recorder,
    connectionOpened: (listener) => void counted.push(`opened ${listener}`),
    connectionClosed: (listener) => void counted.push(`closed ${listener}`),
  };
  const here = { ...world, recorder };
  const first = await createPair(context);
  const second = await createPair(context);
  assert.ok(admit(first.near, "10.80.0.2", "explicit", here) !== undefined);
  second.far.on("error", () => undefined);
  const reset = new Promise((resolve) => second.far.once("close", resolve));
  assert.equal(admit(second.near, "10.80.0.3", "explicit", here), undefined);
  await reset;
  assert.equal(second.near.destroyed, true);
  assert.deepEqual(counted, ["opened explicit"]);
  const closed = once(first.near, "close");
  first.near.destroy();
  await closed;
  assert.deepEqual(counted, ["opened explicit", "closed explicit"]);
  const third = await createPair(context);
  assert.ok(admit(third.near, "10.80.0.2", "explicit", here) !== undefined);
});
