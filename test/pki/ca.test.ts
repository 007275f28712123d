import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync, type KeyObject, sign, verify, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { openCa } from "../../src/pki/ca.ts";
import { buildCertificate, nameOf, toPem } from "../../src/pki/certificate.ts";

const root = mkdtempSync(join(tmpdir(), "sallyport-ca-"));
after(() => rmSync(root, { recursive: true }));

const DAY = 86_400_000;
const REFUSED = { name: "Failure", code: "E_CONFIG", fault: "operator" };
let directories = 0;

test("openCa makes an authority that OpenSSL takes in strict mode", () => {
  const dir = fresh();
  const ca = openCa(dir);
  const file = join(dir, "ca.pem");
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.match(
    execFileSync("openssl", ["verify", "-x509_strict", "-CAfile", file, file], { encoding: "utf8" }),
    /OK/,
  );
  const print = execFileSync("openssl", ["x509", "-in", file, "-noout", "-text"], { encoding: "utf8" });
  assert.match(print, /Version: 3/);
  assert.match(print, /Subject: CN = Sallyport CA [0-9a-f]{8}\n/);
  assert.match(print, /Basic Constraints: critical\n\s+CA:TRUE, pathlen:0\n/);
  assert.match(print, /Key Usage: critical\n\s+Certificate Sign, CRL Sign\n/);
  const [, subjectKey] = /Subject Key Identifier: \n\s+([0-9A-F:]{59})\n/.exec(print) ?? [];
  const [, authorityKey] = /Authority Key Identifier: \n\s+([0-9A-F:]{59})\n/.exec(print) ?? [];
  assert.ok(subjectKey !== undefined && subjectKey === authorityKey);
  assert.equal(Buffer.from(ca.keyId).toString("hex").toUpperCase(), subjectKey.replaceAll(":", ""));
});

test("openCa dates the authority from yesterday for five years", () => {
  const now = new Date("2027-03-04T05:06:07Z");
  const ca = openCa(fresh(), now);
  const certificate = new X509Certificate(ca.certificatePem);
  assert.equal(Date.parse(certificate.validFrom), now.getTime() - DAY);
  assert.equal(ca.notAfter.getTime(), now.getTime() + 5 * 365 * DAY);
  assert.equal(ca.fingerprint, certificate.fingerprint256);
});

test("openCa loads what it made before, and its signatures verify", () => {
  const dir = fresh();
  const made = openCa(dir);
  const loaded = openCa(dir);
  assert.equal(loaded.certificatePem, made.certificatePem);
  assert.equal(loaded.certificatePem, readFileSync(join(dir, "ca.pem"), "utf8"));
  const { publicKey } = new X509Certificate(made.certificatePem);
  assert.equal(verify("sha256", Buffer.from("tbs"), publicKey, loaded.sign(Buffer.from("tbs"))), true);
});

test("openCa gives two installations different names", () => {
  assert.notDeepEqual(openCa(fresh()).subject, openCa(fresh()).subject);
});

test("openCa agrees with other processes that start at the same moment", async () => {
  const dir = fresh();
  const module = JSON.stringify(new URL("../../src/pki/ca.ts", import.meta.url).href);
  // All are loaded and wait before one of them is told to go on.
  const script = `import { openCa } from ${module}; process.stdout.write("."); process.stdin.once("data", () => {
    process.stdout.write(openCa(${JSON.stringify(dir)}).fingerprint); process.exit(); });`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["pipe", "pipe", "inherit"],
    }),
  );
  await Promise.all(children.map((child) => once(child.stdout, "data")));
  const outputs = children.map((child) => text(child.stdout));
  for (const child of children) child.stdin.end("go");
  const fingerprints = new Set(await Promise.all(outputs));
  assert.deepEqual([...fingerprints], [openCa(dir).fingerprint]);
});

test("openCa refuses a key that is not the certificate's", () => {
  const dir = fresh();
  openCa(dir);
  openCa(join(dir, "other"));
  writeFileSync(join(dir, "ca.key"), readFileSync(join(dir, "other", "ca.key")));
  assert.throws(() => openCa(dir), { ...REFUSED, message: /do not belong together/ });
});

test("openCa refuses an authority that has expired or is not valid yet", () => {
  const dir = fresh();
  const now = new Date();
  openCa(dir, now);
  const later = new Date(now.getTime() + 5 * 365 * DAY);
  assert.throws(() => openCa(dir, later), { ...REFUSED, message: /has expired; remove both files/ });
  assert.throws(() => openCa(dir, new Date(now.getTime() - 2 * DAY)), {
    ...REFUSED,
    message: /not valid yet/,
  });
});

test("openCa refuses files that hold nothing, or something else, and quotes no key", () => {
  const dir = fresh();
  const ca = openCa(dir);
  writeFileSync(join(dir, "ca.pem"), "no certificate");
  assert.throws(() => openCa(dir), { ...REFUSED, message: /certificate in .* cannot be read/ });
  writeFileSync(join(dir, "ca.pem"), ca.certificatePem);
  for (const key of ["no key", ca.certificatePem]) {
    writeFileSync(join(dir, "ca.key"), key);
    assert.throws(() => openCa(dir), { ...REFUSED, message: /ca\.key cannot be read/, cause: undefined });
  }
});

test("openCa refuses a certificate that is no authority", () => {
  const dir = fresh();
  openCa(dir);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  replace(dir, publicKey.export({ type: "spki", format: "der" }), privateKey);
  assert.throws(() => openCa(dir), { ...REFUSED, message: /is no CA with a key identifier/ });
});

test("openCa refuses a key of another kind", () => {
  const dir = fresh();
  openCa(dir);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  replace(dir, publicKey.export({ type: "spki", format: "der" }), privateKey);
  assert.throws(() => openCa(dir), { ...REFUSED, message: /not a P-256 key/ });
});

test("openCa refuses a directory that cannot be made", () => {
  const file = join(root, "file");
  writeFileSync(file, "");
  assert.throws(() => openCa(join(file, "dir")), {
    ...REFUSED,
    message: /cannot be made; name another in ca\.dir/,
  });
});

/** Puts another certificate and key in the place of the authority's. */
function replace(dir: string, publicKey: Buffer, key: KeyObject): void {
  const name = nameOf("Other");
  const der = buildCertificate(
    {
      issuer: name,
      subject: name,
      notBefore: new Date(Date.now() - DAY),
      notAfter: new Date(Date.now() + DAY),
      publicKey,
      extensions: [],
    },
    (tbs) => sign("sha256", tbs, key),
  );
  writeFileSync(join(dir, "ca.pem"), toPem(der));
  writeFileSync(join(dir, "ca.key"), key.export({ type: "pkcs8", format: "pem" }));
}

function fresh(): string {
  directories += 1;
  return join(root, `ca-${directories}`);
}
