/** Leaf certificates: one name each, all on one key, so that a name costs one signature. */
import { generateKeyPairSync } from "node:crypto";
import { parseIpAddress } from "../base/ip.ts";
import { Failure } from "../model/failure.ts";
import type { Ca } from "./ca.ts";
import {
  alternativeName,
  authorityKeyId,
  buildCertificate,
  keyIdOf,
  leafConstraints,
  leafKeyUsage,
  nameOf,
  serverAuthUsage,
  subjectKeyId,
  toPem,
} from "./certificate.ts";

/** The key that all leaves of one process share. */
export interface LeafKey {
  /** PKCS#8 PEM. Secret. */
  readonly privatePem: string;
  /** DER of its SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  readonly keyId: Uint8Array;
}

const DAY = 86_400_000;
/** Short, since the gate mints at will; clients take at most 398 days. */
const LIFETIME = 30 * DAY;
/** For clients whose clock is behind. */
const BACKDATED = 2 * DAY;
/** ub-common-name, RFC 5280 appendix A.1. */
const MAX_COMMON_NAME = 64;
/** What a dNSName may hold at all; which names deserve a leaf was decided elsewhere. */
const PRINTABLE = /^[\x21-\x7e]{1,253}$/;

export function createLeafKey(): LeafKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = publicKey.export({ type: "spki", format: "der" });
  const privatePem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return { privatePem, publicKey: spki, keyId: keyIdOf(spki) };
}

/**
 * PEM of a leaf for a canonical hostname, or for an address in canonical text. Valid from two days before `now` for 30
 * days from `now`, never beyond the authority.
 */
export function mintLeaf(ca: Ca, name: string, now: Date, key: LeafKey): string {
  if (!PRINTABLE.test(name)) throw new Failure("E_INTERNAL", "gate", "A leaf was asked for what is no name");
  const fits = name.length <= MAX_COMMON_NAME;
  const der = buildCertificate(
    {
      issuer: ca.subject,
      subject: nameOf(fits ? name : undefined),
      notBefore: new Date(now.getTime() - BACKDATED),
      notAfter: new Date(leafExpiry(ca, now.getTime())),
      publicKey: key.publicKey,
      extensions: [
        leafConstraints(),
        leafKeyUsage(),
        serverAuthUsage(),
        subjectKeyId(key.keyId),
        authorityKeyId(ca.keyId),
        alternativeName(parseIpAddress(name)?.octets ?? name, !fits),
      ],
    },
    (tbs) => ca.sign(tbs),
  );
  return toPem(der);
}

/** When a leaf minted at `now` ends. Milliseconds since the epoch. */
export function leafExpiry(ca: Ca, now: number): number {
  return Math.min(now + LIFETIME, ca.notAfter.getTime());
}
