/** Ten thousand leaves, each of which OpenSSL must load: a fault of one in a hundred once showed only in numbers. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createSecureContext } from "node:tls";
import { openCa } from "../../src/pki/ca.ts";
import { createLeafKey, mintLeaf } from "../../src/pki/leaf.ts";

const dir = mkdtempSync(join(tmpdir(), "sallyport-mint-"));
after(() => rmSync(dir, { recursive: true }));

test("mintLeaf makes a certificate that OpenSSL loads and verifies, 10,000 times", () => {
  const ca = openCa(dir);
  const issuer = new X509Certificate(ca.certificatePem);
  const serials = new Set<string>();
  for (let round = 0; round < 10_000; round += 10) {
    // A new key now and then, so that its bits vary too.
    const key = createLeafKey();
    for (const name of namesOf(round)) {
      const pem = mintLeaf(ca, name, new Date(), key);
      const leaf = new X509Certificate(pem);
      assert.ok(leaf.verify(issuer.publicKey), pem);
      createSecureContext({ cert: pem, key: key.privatePem });
      serials.add(leaf.serialNumber);
    }
  }
  assert.equal(serials.size, 10_000);
});

function namesOf(round: number): string[] {
  return Array.from({ length: 10 }, (_, index) => {
    const labels = Array.from({ length: 1 + (index % 4) }, (_, depth) =>
      "n".repeat(1 + ((round + depth) % 60)),
    );
    return `${labels.join(".")}.${round + index}.io`.slice(-253).replace(/^\./, "");
  });
}
