/** A PKCS#12 file of trusted certificates (RFC 7292), as Java reads it. Pure. */
import {
  bmpString,
  type Der,
  encodeDer,
  explicit,
  octetString,
  oid,
  sequence,
  set,
  smallInteger,
} from "./der.ts";

export interface TrustedCertificate {
  /** Unique in its file: of two with one alias Java keeps one. */
  readonly alias: string;
  readonly der: Uint8Array;
}

const OID_DATA = "1.2.840.113549.1.7.1";
const OID_CERTIFICATE_BAG = "1.2.840.113549.1.12.10.1.3";
const OID_X509_CERTIFICATE = "1.2.840.113549.1.9.22.1";
const OID_FRIENDLY_NAME = "1.2.840.113549.1.9.20";
/** Java's own: without it a certificate that comes without a key is not taken for a trusted one. */
const OID_TRUSTED_KEY_USAGE = "2.16.840.1.113894.746875.1.1";
const OID_ANY_USAGE = "2.5.29.37.0";

const PFX_VERSION = 3;

/**
 * Neither encrypted nor with a MAC: nothing in it is secret, and a password that everybody knows proves nothing. Java
 * reads such a file with and without a password.
 */
export function buildTruststore(certificates: readonly TrustedCertificate[]): Buffer {
  const bags = encodeDer(sequence(...certificates.map(bagOf)));
  const safes = encodeDer(sequence(data(bags)));
  return encodeDer(sequence(smallInteger(PFX_VERSION), data(safes)));
}

function bagOf({ alias, der }: TrustedCertificate): Der {
  const certificate = sequence(oid(OID_X509_CERTIFICATE), explicit(0, octetString(der)));
  return sequence(
    oid(OID_CERTIFICATE_BAG),
    explicit(0, certificate),
    sortedSet(
      sequence(oid(OID_FRIENDLY_NAME), set(bmpString(alias))),
      sequence(oid(OID_TRUSTED_KEY_USAGE), set(oid(OID_ANY_USAGE))),
    ),
  );
}

/** DER orders a SET OF by its encodings (X.690 section 11.6). */
function sortedSet(...values: Der[]): Der {
  return set(...values.sort((a, b) => Buffer.compare(encodeDer(a), encodeDer(b))));
}

function data(content: Uint8Array): Der {
  return sequence(oid(OID_DATA), explicit(0, octetString(content)));
}
