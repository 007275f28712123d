import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { publishPair, readPair } from "../../src/pki/ca-files.ts";

const root = mkdtempSync(join(tmpdir(), "sallyport-ca-files-"));
let dir = root;
beforeEach((context) => {
  dir = join(root, context.name.replace(/[^a-z]+/gi, "-"));
  mkdirSync(dir);
});
after(() => rmSync(root, { recursive: true }));

const PAIR = { certificate: "certificate\n", key: "key\n" };
const REFUSED = { name: "Failure", code: "E_CONFIG", fault: "operator" };

test("publishPair leaves exactly two files, of which others may read the certificate", () => {
  const umask = process.umask(0o077);
  try {
    publishPair(dir, PAIR);
  } finally {
    process.umask(umask);
  }
  assert.deepEqual(readdirSync(dir), ["ca.key", "ca.pem"]);
  assert.equal(statSync(join(dir, "ca.key")).mode & 0o777, 0o600);
  assert.equal(statSync(join(dir, "ca.pem")).mode & 0o777, 0o644);
  assert.deepEqual(readPair(dir), PAIR);
});

test("publishPair drops its pair where another was first", () => {
  publishPair(dir, PAIR);
  publishPair(dir, { certificate: "late\n", key: "late\n" });
  assert.deepEqual(readPair(dir), PAIR);
  assert.deepEqual(readdirSync(dir), ["ca.key", "ca.pem"]);
});

test("publishPair adds no certificate of its own to a key that another process published", () => {
  writeFileSync(join(dir, "ca.key"), "other\n", { mode: 0o600 });
  publishPair(dir, PAIR);
  assert.deepEqual(readdirSync(dir), ["ca.key"]);
});

test("publishPair fails where nothing can be written", () => {
  assert.throws(() => publishPair(join(dir, "absent"), PAIR), { ...REFUSED, message: /ENOENT/ });
});

test("readPair is undefined where there is neither file", () => {
  assert.equal(readPair(dir), undefined);
});

test("readPair waits for the certificate of a key that was just published", async () => {
  writeFileSync(join(dir, "ca.key"), PAIR.key, { mode: 0o600 });
  // This thread sleeps while it waits, so another process brings the certificate.
  const late = spawn("sh", ["-c", 'sleep 0.1; printf "certificate\\n" > ca.pem'], { cwd: dir });
  assert.deepEqual(readPair(dir), PAIR);
  await once(late, "close");
});

test("readPair refuses a key alone and a certificate alone, and says which one is missing", () => {
  writeFileSync(join(dir, "ca.key"), PAIR.key, { mode: 0o600 });
  assert.throws(() => readPair(dir), { ...REFUSED, message: /holds ca\.key without ca\.pem; restore/ });
  rmSync(join(dir, "ca.key"));
  writeFileSync(join(dir, "ca.pem"), PAIR.certificate);
  assert.throws(() => readPair(dir), { ...REFUSED, message: /holds ca\.pem without ca\.key; restore/ });
});

test("readPair refuses a key that others may read", () => {
  publishPair(dir, PAIR);
  for (const mode of [0o640, 0o604, 0o660, 0o601]) {
    chmodSync(join(dir, "ca.key"), mode);
    assert.throws(() => readPair(dir), { ...REFUSED, message: /chmod 600/ });
  }
  chmodSync(join(dir, "ca.key"), 0o400);
  assert.deepEqual(readPair(dir), PAIR);
});

test("readPair refuses what is empty, huge or no file", () => {
  publishPair(dir, PAIR);
  writeFileSync(join(dir, "ca.pem"), "");
  assert.throws(() => readPair(dir), { ...REFUSED, message: /empty or too large/ });
  writeFileSync(join(dir, "ca.pem"), Buffer.alloc(1_048_577));
  assert.throws(() => readPair(dir), { ...REFUSED, message: /empty or too large/ });
  rmSync(join(dir, "ca.pem"));
  mkdirSync(join(dir, "ca.pem"));
  assert.throws(() => readPair(dir), { ...REFUSED, message: /cannot be read \(EISDIR\)/ });
});

test("readPair refuses a directory that is none", () => {
  writeFileSync(join(dir, "file"), "");
  assert.throws(() => readPair(join(dir, "file")), { ...REFUSED, message: /cannot be read \(ENOTDIR\)/ });
});
