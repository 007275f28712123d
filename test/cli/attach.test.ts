/** `attach` as a command: what it must be told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sallyport } from "./program.ts";

for (const [args, said] of [
  [[], /Give --pid or --netns/],
  [["--pid", "1", "--netns", "/x"], /Give --pid or --netns/],
  [["--pid", "-1"], /--pid/],
  [["--pid=0"], /--pid must be a number/],
  [["--netns", "/x", "y"], /takes no arguments/],
] as const) {
  test(`attach ${args.join(" ")}: ${said.source}`, async () => {
    const { code, stderr } = await sallyport(["attach", ...args]);
    assert.equal(code, 2);
    assert.match(stderr, said);
  });
}
