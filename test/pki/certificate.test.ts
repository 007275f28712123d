import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import { test } from "node:test";
import {
  alternativeName,
  authorityConstraints,
  buildCertificate,
  keyIdOf,
  nameOf,
  readIssuer,
  subjectKeyId,
  toPem,
} from "../../src/pki/certificate.ts";
import type { Der } from "../../src/pki/der.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const SPKI = publicKey.export({ type: "spki", format: "der" });

test("toPem writes whole lines and no blank one, whatever the length", () => {
  for (let size = 1; size <= 200; size++) {
    const lines = toPem(Buffer.alloc(size, 1)).split("\n");
    assert.equal(lines.shift(), "-----BEGIN CERTIFICATE-----");
    assert.deepEqual(lines.splice(-2), ["-----END CERTIFICATE-----", ""]);
    const last = lines.pop() ?? "";
    assert.ok(lines.every((line) => line.length === 64));
    assert.ok(last.length >= 4 && last.length <= 64, `${size}: ${last.length}`);
    assert.equal(Buffer.from([...lines, last].join(""), "base64").length, size);
  }
});

test("buildCertificate gives each certificate a positive serial of at most 20 octets, and no two the same", () => {
  const serials = new Set<string>();
  for (let round = 0; round < 50; round++) {
    const { serialNumber } = new X509Certificate(build([]));
    assert.match(serialNumber, /^[4-7][0-9A-F]{31}$/);
    serials.add(serialNumber);
  }
  assert.equal(serials.size, 50);
});

test("readIssuer finds name and key identifier where they are, and says where there is none", () => {
  const keyId = keyIdOf(SPKI);
  const name = nameOf("Issuer");
  const whole = readIssuer({ raw: build([authorityConstraints(), subjectKeyId(keyId)]) });
  assert.deepEqual(whole, { subject: name, keyId });
  assert.equal(readIssuer({ raw: build([authorityConstraints()]) }), undefined);
  assert.equal(readIssuer({ raw: Buffer.from("3000", "hex") }), undefined);
  assert.equal(readIssuer({ raw: Buffer.from("30023000", "hex") }), undefined);
  assert.throws(() => readIssuer({ raw: Buffer.from("no certificate") }));
});

test("keyIdOf hashes the bits of the key alone", () => {
  // An uncompressed P-256 point ends the structure.
  const expected = createHash("sha256").update(SPKI.subarray(-65)).digest().subarray(0, 20);
  assert.deepEqual(keyIdOf(SPKI), expected);
});

test("nameOf makes the empty name where there is no common name", () => {
  assert.equal(nameOf(undefined).toString("hex"), "3000");
  assert.match(nameOf("a.example").toString("latin1"), /a\.example$/);
});

test("alternativeName tells names from addresses", () => {
  const of = (...extensions: Der[]) => new X509Certificate(build(extensions)).subjectAltName;
  assert.equal(of(alternativeName("a.example", false)), "DNS:a.example");
  assert.equal(of(alternativeName(Uint8Array.of(192, 0, 2, 7), false)), "IP Address:192.0.2.7");
});

function build(extensions: readonly Der[]): Buffer {
  const name = nameOf("Issuer");
  const notBefore = new Date(0);
  const notAfter = new Date("2060-01-01T00:00:00Z");
  return buildCertificate(
    { issuer: name, subject: name, notBefore, notAfter, publicKey: SPKI, extensions },
    (tbs) => sign("sha256", tbs, privateKey),
  );
}
