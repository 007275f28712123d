/** Tokens that Node.js's own verifier accepts; keys that are none are not quoted. */
import assert from "node:assert/strict";
import { generateKeyPairSync, verify } from "node:crypto";
import { test } from "node:test";
import { signJwt } from "../../src/secrets/jwt.ts";

test("signJwt: RS256 with a key of either PEM form", async () => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  for (const type of ["pkcs1", "pkcs8"] as const) {
    const pem = privateKey.export({ type, format: "pem" }).toString();
    const [header = "", claims = "", signature = ""] = (await signJwt({ iss: "me" }, pem, "k")).split(".");
    assert.deepEqual(JSON.parse(Buffer.from(header, "base64url").toString()), {
      alg: "RS256",
      typ: "JWT",
      kid: "k",
    });
    assert.ok(
      verify("sha256", Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, "base64url")),
    );
  }
});

test("signJwt: no key, and a key of another kind", () => {
  assert.throws(() => signJwt({}, "s3cr3t", undefined), /^Error: The private key cannot be read/);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  assert.throws(() => signJwt({}, pem, undefined), /not an RSA key/);
});
