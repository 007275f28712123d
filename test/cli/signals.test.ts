import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT } from "../../src/cli/command.ts";
import { signalled } from "../../src/cli/signals.ts";

test("signalled resolves with the first signal, and a second one ends the process", async (context) => {
  const ends = context.mock.method(process, "exit", () => undefined as never);
  context.after(() => {
    for (const signal of ["SIGCONT", "SIGWINCH"] as const) process.removeAllListeners(signal);
  });
  const first = signalled(["SIGCONT", "SIGWINCH"]);
  process.emit("SIGWINCH", "SIGWINCH");
  assert.equal(await first, "SIGWINCH");
  assert.equal(ends.mock.callCount(), 0);
  process.emit("SIGCONT", "SIGCONT");
  assert.deepEqual(ends.mock.calls[0]?.arguments, [EXIT.broke]);
});
