/** The new secret is there whole, in the very file of the old one, and as closed; what fails leaves the old one. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { writeSecretFile } from "../../src/secrets/secret-file-writer.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-writer-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("writeSecretFile: replaces the file, for its owner alone", () => {
  const path = join(folder, "token");
  writeFileSync(path, "old\n", { mode: 0o644 });
  assert.equal(writeSecretFile(path, "new"), undefined);
  assert.equal(readFileSync(path, "utf8"), "new\n");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ["token"]);
});

test("writeSecretFile: it is the same file, so that what is mounted over it stays", () => {
  const path = join(folder, "token");
  const before = statSync(path).ino;
  for (const secret of ["a longer one than that before", "short"]) {
    assert.equal(writeSecretFile(path, secret), undefined);
    assert.equal(readFileSync(path, "utf8"), `${secret}\n`);
  }
  assert.equal(statSync(path).ino, before);
});

test("writeSecretFile: a file that is not there is not made", () => {
  const path = join(folder, "absent");
  assert.match(writeSecretFile(path, "new-secret") ?? "", /absent` \(ENOENT\); it is kept in memory alone$/);
  assert.deepEqual(readdirSync(folder), ["token"]);
});
