import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { getCACertificates } from "node:tls";
import { systemRoots } from "../../src/pki/system-roots.ts";

test("systemRoots gives certificates, each once", () => {
  const roots = systemRoots();
  assert.ok(roots.length > 0);
  assert.equal(new Set(roots).size, roots.length);
  for (const pem of roots.slice(0, 5)) assert.ok(new X509Certificate(pem).subject !== "");
});

test("systemRoots falls back to what Node brings along where the machine has none", () => {
  const module = JSON.stringify(new URL("../../src/pki/system-roots.ts", import.meta.url).href);
  const script = `import { systemRoots } from ${module}; process.stdout.write(String(systemRoots().length));`;
  // Where OpenSSL looks for the system's roots.
  const env = { SSL_CERT_FILE: "/nonexistent", SSL_CERT_DIR: "/nonexistent" };
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", script], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  assert.equal(Number(output), new Set(getCACertificates("bundled")).size);
});
