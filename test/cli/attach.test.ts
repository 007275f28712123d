/** `attach` as a command: what it must be told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nothingThere } from "../../src/cli/attach.ts";
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

test("nothingThere: tells what is not there from what is hidden", () => {
  const said = (path: string, pid: number | undefined): string => nothingThere({ path, pid }).message;
  assert.equal(said("/run/netns/none", undefined), "There is no namespace at /run/netns/none");
  assert.equal(said("/proc/4194305/ns/net", 4194305), "There is no process 4194305");
  assert.match(said(`/proc/${process.pid}/ns/net`, process.pid), /^The network of process \d+ is hidden/);
});
