import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createSecureContext } from "node:tls";
import { openCa } from "../../src/pki/ca.ts";
import { createLeafKey, leafExpiry, mintLeaf } from "../../src/pki/leaf.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-leaf-"));
after(() => rmSync(dir, { recursive: true }));

const DAY = 86_400_000;
const NOW = new Date();
const LONG = `${"a".repeat(60)}.${"b".repeat(60)}.example.com`;
const ca = openCa(join(dir, "ca"));
const key = createLeafKey();

test("mintLeaf makes leaves that OpenSSL takes in strict mode, for names and addresses", () => {
  const names = [
    "api.example.com",
    "192.0.2.7",
    "2001:db8::7",
    LONG,
    "x--y.xn--bcher-kva.example",
    "_dmarc.example",
  ];
  for (const name of names) {
    const file = join(dir, "leaf.pem");
    writeFileSync(file, mintLeaf(ca, name, NOW, key));
    const asked = /^[0-9.]+$|:/.test(name) ? ["-verify_ip", name] : ["-verify_hostname", name];
    const command = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_depth", "0", ...asked];
    const output = execFileSync("openssl", [...command, "-CAfile", join(dir, "ca", "ca.pem"), file]);
    assert.match(output.toString(), /: OK/, name);
  }
});

test("mintLeaf says in the certificate what strict clients look for", () => {
  const print = (name: string) =>
    execFileSync("openssl", ["x509", "-noout", "-text"], { input: mintLeaf(ca, name, NOW, key) }).toString();
  const short = print("api.example.com");
  assert.match(short, /Version: 3 /);
  assert.match(short, /Subject: CN = api\.example\.com\n/);
  assert.match(short, /Basic Constraints: critical\n\s+CA:FALSE\n/);
  assert.match(short, /Key Usage: critical\n\s+Digital Signature\n/);
  assert.match(short, /Extended Key Usage: \n\s+TLS Web Server Authentication\n/);
  assert.match(short, /Subject Key Identifier: \n\s+[0-9A-F:]{59}\n/);
  assert.match(short, /Authority Key Identifier: \n\s+[0-9A-F:]{59}\n/);
  assert.match(short, /Subject Alternative Name: \n\s+DNS:api\.example\.com\n/);
  assert.match(short, /Signature Algorithm: ecdsa-with-SHA256/);
  const long = print(LONG);
  assert.match(long, /Subject: ?\n/);
  assert.match(long, /Subject Alternative Name: critical\n\s+DNS:a{60}\.b{60}\.example\.com\n/);
  assert.match(print("2001:db8::7"), /Subject Alternative Name: \n\s+IP Address:2001:DB8:0:0:0:0:0:7\n/);
});

test("mintLeaf fills the common name up to 64 characters, and leaves it out beyond", () => {
  const fitting = `${"a".repeat(56)}.example`;
  assert.equal(new X509Certificate(mintLeaf(ca, fitting, NOW, key)).subject, `CN=${fitting}`);
  assert.equal(new X509Certificate(mintLeaf(ca, `a${fitting}`, NOW, key)).subject ?? "", "");
});

test("mintLeaf dates a leaf from two days ago, for 30 days, never beyond the authority", () => {
  const dates = (now: Date) => {
    const leaf = new X509Certificate(mintLeaf(ca, "a.example", now, key));
    return [Date.parse(leaf.validFrom), Date.parse(leaf.validTo)];
  };
  const now = new Date("2027-03-04T05:06:07Z");
  assert.deepEqual(dates(now), [now.getTime() - 2 * DAY, now.getTime() + 30 * DAY]);
  const late = new Date(ca.notAfter.getTime() - 3 * DAY);
  assert.deepEqual(dates(late), [late.getTime() - 2 * DAY, ca.notAfter.getTime()]);
  assert.equal(leafExpiry(ca, late.getTime()), ca.notAfter.getTime());
});

test("mintLeaf refuses what is no name at all", () => {
  for (const name of ["", "a b", "a\0b", "a\nb", "é.example", "a".repeat(254)]) {
    assert.throws(
      () => mintLeaf(ca, name, NOW, key),
      { code: "E_INTERNAL", fault: "gate" },
      JSON.stringify(name),
    );
  }
});

test("mintLeaf makes a whole certificate whatever the name's length, 1,000 times", () => {
  const issuer = new X509Certificate(ca.certificatePem);
  for (let round = 0; round < 1_000; round++) {
    const name = `${"n".repeat(1 + (round % 63))}.${round}.example.com`;
    const pem = mintLeaf(ca, name, NOW, key);
    const leaf = new X509Certificate(pem);
    assert.equal(leaf.checkHost(name, { subject: "never" }), name);
    if (round % 20 > 0) continue;
    assert.ok(leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey));
    createSecureContext({ cert: pem, key: key.privatePem });
  }
});
