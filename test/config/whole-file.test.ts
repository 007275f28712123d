import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { MAX_FILE_BYTES, readWhole } from "../../src/config/whole-file.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-whole-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("readWhole refuses a file that is not there, a folder and a pipe", () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const [path, problem] of [
    [join(folder, "none.yaml"), "There is no such file"],
    [join(folder, "a\0b"), "The file cannot be read (ERR_INVALID_ARG_VALUE)"],
    [folder, "This is not a regular file"],
    [pipe, "This is not a regular file"],
  ] as const) {
    assert.deepEqual(readWhole(path), { ok: false, problem });
  }
});

test("readWhole refuses bytes that are not UTF-8", () => {
  const file = join(folder, "latin1.yaml");
  writeFileSync(file, Buffer.from("version: 1 # \xe9\n", "latin1"));
  assert.deepEqual(readWhole(file), { ok: false, problem: "The file is not UTF-8" });
});

test("readWhole takes 1 MiB whole, and not a byte more", () => {
  const file = join(folder, "large.yaml");
  const full = "x".repeat(MAX_FILE_BYTES);
  writeFileSync(file, full);
  assert.deepEqual(readWhole(file), { ok: true, text: full });
  writeFileSync(file, `${full}x`);
  assert.deepEqual(readWhole(file), { ok: false, problem: "The file is larger than 1 MiB" });
});
