/** One file, one secret: how it is read, when it is read again, and what is wrong with others. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { watchSecretFile } from "../../src/secrets/secret-file.ts";

const folder = mkdtempSync(join(tmpdir(), "sallyport-secret-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

/** A file with this content, its reader, and its clock. */
function secretFile(content?: string | Uint8Array) {
  const path = join(folder, String(files++));
  if (content !== undefined) writeFileSync(path, content);
  let time = 0;
  const file = watchSecretFile(path, () => time);
  return {
    path,
    file,
    /** What is read after a second. */
    later() {
      time += 1_000;
      return file.read();
    },
    wait(ms: number) {
      time += ms;
    },
  };
}

const TAKEN: readonly (readonly [string, string | Uint8Array, string])[] = [
  ["no newline", "abc", "abc"],
  ["a newline", "abc\n", "abc"],
  ["CRLF", "abc\r\n", "abc"],
  ["a byte order mark", "\ufeffabc\n", "abc"],
  ["latin1 letters in UTF-8", "caf\u00e9", "caf\u00e9"],
];

for (const [name, content, value] of TAKEN) {
  test(`read: ${name} is as one expects`, () => {
    assert.deepEqual(secretFile(content).file.read(), { ok: true, value });
  });
}

const CONTROL = "holds a line break, NUL or another control character";
const BLANK = "starts or ends with a blank or line break";
const REFUSED: readonly (readonly [string, string | Uint8Array, string])[] = [
  ["an empty file", "", "is empty"],
  ["a newline alone", "\n", "is empty"],
  ["two newlines", "abc\n\n", BLANK],
  ["several lines", "abc\ndef\n", CONTROL],
  ["a header smuggled in", "abc\r\nX-Evil: 1\r\n", CONTROL],
  ["NUL", "abc\0def", CONTROL],
  ["an outer blank", " abc\n", BLANK],
  ["what is not UTF-8", new Uint8Array([0x61, 0xe9, 0x62]), "is not UTF-8"],
  ["what latin1 lacks", "abc\u20ac", "holds a character that cannot stand in a header"],
  ["more than a value can have", "x".repeat(16_385), "is longer than 16 KiB"],
  ["more than 64 KiB", "x".repeat(65_537), "is larger than 64 KiB"],
];

for (const [name, content, problem] of REFUSED) {
  test(`read: ${name} is a problem that names the file alone`, () => {
    const { file, path } = secretFile(content);
    assert.deepEqual(file.read(), { ok: false, problem: `File \`${path}\` ${problem}` });
  });
}

test("read: a file that is not there, a folder and a pipe are problems, and do not block", () => {
  const missing = secretFile();
  assert.deepEqual(missing.file.read(), {
    ok: false,
    problem: `File \`${missing.path}\` cannot be read (ENOENT)`,
  });
  const directory = secretFile();
  mkdirSync(directory.path);
  assert.deepEqual(directory.file.read(), {
    ok: false,
    problem: `File \`${directory.path}\` is not a regular file`,
  });
  const pipe = secretFile();
  execFileSync("mkfifo", [pipe.path]);
  assert.deepEqual(pipe.file.read(), { ok: false, problem: `File \`${pipe.path}\` is not a regular file` });
});

test("read: within a second the file is not looked at", () => {
  const { file, path, wait } = secretFile("one");
  const first = file.read();
  writeFileSync(path, "two");
  wait(999);
  assert.equal(file.read(), first);
  wait(1);
  assert.deepEqual(file.read(), { ok: true, value: "two" });
});

test("read: nothing changed, so it is the same object", () => {
  const { file, path, later } = secretFile("one");
  const first = file.read();
  assert.equal(later(), first);
  writeFileSync(path, "one\n");
  assert.equal(later(), first);
});

test("read: a change of the same length within one tick of the file's times is seen", () => {
  const { file, path, later } = secretFile("one");
  file.read();
  for (const value of ["two", "six", "ten"]) {
    writeFileSync(path, value);
    assert.deepEqual(later(), { ok: true, value });
  }
});

test("read: an old file is read again once it changes, by renaming too", () => {
  const { file, path, later } = secretFile("one");
  utimesSync(path, 1, 1);
  assert.deepEqual(file.read(), { ok: true, value: "one" });
  assert.deepEqual(later(), { ok: true, value: "one" });
  writeFileSync(`${path}.new`, "two");
  utimesSync(`${path}.new`, 1, 1);
  renameSync(`${path}.new`, path);
  assert.deepEqual(later(), { ok: true, value: "two" });
  writeFileSync(path, "six");
  utimesSync(path, 1, 1);
  assert.deepEqual(later(), { ok: true, value: "six" });
});

test("read: a link that is exchanged, as Kubernetes does, is followed", () => {
  const { file, path, later } = secretFile();
  for (const version of ["v1", "v2"]) writeFileSync(`${path}-${version}`, version);
  symlinkSync(`${path}-v1`, path);
  assert.deepEqual(file.read(), { ok: true, value: "v1" });
  symlinkSync(`${path}-v2`, `${path}-tmp`);
  renameSync(`${path}-tmp`, path);
  assert.deepEqual(later(), { ok: true, value: "v2" });
});

test("read: a file that goes away is a problem until it is back", () => {
  const { file, path, later } = secretFile("one");
  file.read();
  rmSync(path);
  assert.equal(later().ok, false);
  writeFileSync(path, "one");
  assert.deepEqual(later(), { ok: true, value: "one" });
});
