import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../../src/pki/make-folder.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-folder-"));
const MODULE = fileURLToPath(new URL("../../src/pki/make-folder.ts", import.meta.url));

test("makeFolder makes what is missing above too, and leaves what is there", () => {
  const path = join(dir, "a/b/c");
  makeFolder(path, 0o700);
  assert.equal(statSync(path).mode & 0o777, 0o700);
  chmodSync(path, 0o750);
  makeFolder(path, 0o700);
  assert.equal(statSync(path).mode & 0o777, 0o750);
});

test("makeFolder throws where a file stands in the way", () => {
  const file = join(dir, "file");
  writeFileSync(file, "");
  assert.throws(() => makeFolder(file, 0o700), { code: "EEXIST" });
  assert.throws(() => makeFolder(join(file, "below"), 0o700), { code: "ENOTDIR" });
});

test("makeFolder ends where the system takes no folder and says that there is none", () => {
  const script = `import { makeFolder } from ${JSON.stringify(MODULE)}; makeFolder("/proc/nope/below", 0o700);`;
  const { status, signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 20_000,
  });
  assert.deepEqual([status, signal], [1, null]);
  assert.match(stderr, /ENOENT/);
});
