/** Signs a JSON Web Token with an RSA key. The only adapter of `jose`, loaded where a token is asked for with one. */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { type JWTPayload, SignJWT } from "jose";

/** `pem`: PKCS #1 or #8. Throws where it is no RSA key; no message quotes it. */
export function signJwt(claims: JWTPayload, pem: string, kid: string | undefined): Promise<string> {
  const header = { alg: "RS256", typ: "JWT", ...(kid === undefined ? {} : { kid }) };
  return new SignJWT(claims).setProtectedHeader(header).sign(keyOf(pem));
}

function keyOf(pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new Error("The private key cannot be read; it must be PEM without a passphrase");
  }
  if (key.asymmetricKeyType !== "rsa") throw new Error("The private key is not an RSA key");
  return key;
}
