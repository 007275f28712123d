import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { childrenOf, decodeDer, encodeDer, isObject, octetsOf } from "../../src/pki/der.ts";
import { buildTruststore } from "../../src/pki/truststore.ts";
import { createAuthority } from "../support/pki.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-truststore-"));
after(() => rmSync(dir, { recursive: true }));

const CERTIFICATES = ["one", "two"].map((alias) => new X509Certificate(createAuthority(alias).certPem));
const STORE = buildTruststore(CERTIFICATES.map(({ raw }, index) => ({ alias: `alias-${index}`, der: raw })));

test("buildTruststore: a store of Java lists each certificate as trusted, with a password and without", () => {
  const file = join(dir, "store.p12");
  writeFileSync(file, STORE);
  for (const password of [[], ["-storepass", "whatever"]]) {
    const argv = ["-J-Duser.language=en", "-list", "-keystore", file, "-storetype", "PKCS12", ...password];
    const listed = execFileSync("keytool", argv, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    assert.match(listed, /contains 2 entries/);
    for (const [index, { fingerprint256 }] of CERTIFICATES.entries()) {
      assert.match(listed, new RegExp(`^alias-${index}, .*, trustedCertEntry,`, "m"));
      assert.ok(listed.includes(fingerprint256));
    }
  }
});

test("buildTruststore writes DER, whose sets are in order", () => {
  assert.deepEqual(encodeDer(decodeDer(STORE)), STORE);
  const bag = childrenOf(contentOf(contentOf(decodeDer(STORE))))[0];
  assert.ok(bag !== undefined);
  const [id, , attributes] = childrenOf(bag);
  assert.ok(isObject(id, "1.2.840.113549.1.12.10.1.3") && attributes !== undefined);
  const encoded = childrenOf(attributes).map(encodeDer);
  assert.equal(encoded.length, 2);
  assert.deepEqual(encoded, [...encoded].sort(Buffer.compare));
});

test("buildTruststore of nothing is a store that holds nothing", () => {
  assert.deepEqual(childrenOf(contentOf(contentOf(decodeDer(buildTruststore([]))))), []);
});

/** What is in the data of a PFX, and of the first of its safes. */
function contentOf(value: ReturnType<typeof decodeDer>): ReturnType<typeof decodeDer> {
  const info = childrenOf(value).find((child) => isObject(childrenOf(child)[0], "1.2.840.113549.1.7.1"));
  const octets = childrenOf(childrenOf(info ?? value)[1] ?? value)[0];
  assert.ok(octets !== undefined);
  return decodeDer(octetsOf(octets));
}
