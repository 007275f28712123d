import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { systemRoots } from "../../src/pki/system-roots.ts";
import { bundleOf, writeBundle, writeTruststore } from "../../src/pki/trust-bundle.ts";
import { createAuthority } from "../support/pki.ts";

const CA = { certificatePem: createAuthority("Sallyport CA test").certPem };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "sallyport-bundle-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("bundleOf holds our authority and every root of the machine, each once", () => {
  const blocks = bundleOf(CA).match(/-----BEGIN CERTIFICATE-----\n[^-]+\n-----END CERTIFICATE-----\n/g) ?? [];
  const fingerprints = blocks.map((pem) => new X509Certificate(pem).fingerprint256);
  const roots = systemRoots().map((pem) => new X509Certificate(pem).fingerprint256);
  assert.equal(fingerprints[0], new X509Certificate(CA.certificatePem).fingerprint256);
  assert.ok(roots.length > 1);
  assert.deepEqual(new Set(fingerprints.slice(1)), new Set(roots));
  assert.equal(new Set(fingerprints).size, fingerprints.length);
  assert.equal(blocks.join(""), bundleOf(CA));
});

test("bundleOf holds our authority once where the machine trusts it already", () => {
  const [root = ""] = systemRoots();
  const certificatePem = `${root.trim()}\n`;
  assert.equal(bundleOf({ certificatePem }).split(certificatePem).length, 2);
});

test("writeBundle and writeTruststore: readable by all, writable by none, whatever the umask, and over an old one", () => {
  const before = process.umask(0o077);
  try {
    for (let round = 0; round < 2; round += 1) {
      writeBundle(join(dir, "b.pem"), CA);
      writeTruststore(join(dir, "b.p12"), CA);
    }
  } finally {
    process.umask(before);
  }
  for (const name of ["b.pem", "b.p12"]) assert.equal(statSync(join(dir, name)).mode & 0o777, 0o444);
  assert.equal(readFileSync(join(dir, "b.pem"), "utf8"), bundleOf(CA));
  assert.deepEqual(readdirSync(dir).sort(), ["b.p12", "b.pem"]);
});

test("writeBundle: whoever reads the old one while it is replaced keeps the whole old one", () => {
  const path = join(dir, "b.pem");
  writeBundle(path, CA);
  const { ino } = statSync(path);
  writeBundle(path, CA);
  assert.notEqual(statSync(path).ino, ino);
});

test("writeBundle: a place that cannot be written is the operator's failure, and leaves nothing behind", () => {
  const failure = { code: "E_CONFIG", fault: "operator" };
  assert.throws(() => writeBundle(join(dir, "none", "b.pem"), CA), {
    ...failure,
    message: /\(ENOENT\); its folder is not there: make it first$/,
  });
  assert.throws(() => writeTruststore(dir, CA), { ...failure, message: /cannot be written/ });
  assert.deepEqual(readdirSync(dir), []);
});
