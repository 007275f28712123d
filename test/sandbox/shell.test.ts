/** Words for `sh`: whatever they hold, the shell reads back the same. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { command, quoted } from "../../src/sandbox/shell.ts";

test("quoted, command: the shell gives back what went in", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.string({ unit: "binary" }).map((text) => text.replaceAll("\0", "")),
        { maxLength: 8 },
      ),
      (words) => {
        const script = `printf '%s\\0' ${command(...words)}`;
        const { stdout } = spawnSync("sh", ["-c", script], { encoding: "utf8" });
        const expected = words.length === 0 ? [""] : words;
        assert.deepEqual(stdout.split("\0").slice(0, -1), expected);
      },
    ),
    { numRuns: 60 },
  );
});

test("quoted: plain words stay plain", () => {
  assert.equal(quoted("/usr/bin/mount"), "/usr/bin/mount");
  assert.equal(quoted("--map-user=1"), "--map-user=1");
  assert.equal(quoted(""), "''");
});
