/** A client's token, believed once, is remembered by a keyed digest alone. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Secrets } from "./secrets.ts";

/** Of this process alone: a proof that leaked would be of no use. */
const PROOF_KEY = randomBytes(32);

/** What may be kept of a token that was shown: a keyed digest. Undefined where it is not the right one. */
export function proofOf(secrets: Secrets, key: string, presented: string): string | undefined {
  const proof = createHmac("sha256", PROOF_KEY).update(presented, "latin1").digest("base64");
  return proofHolds(secrets, key, proof) ? proof : undefined;
}

/** Whether the token is still the one behind this proof. Compares in constant time; false where the token is not to be had. */
export function proofHolds(secrets: Secrets, key: string, proof: string): boolean {
  const rendered = secrets.render(key);
  if (!rendered.ok) return false;
  const right = createHmac("sha256", PROOF_KEY).update(rendered.value, "latin1").digest();
  return timingSafeEqual(right, Buffer.from(proof, "base64"));
}
