/** X.509 version 3 certificates (RFC 5280) as DER and PEM: built here, signed by whoever holds the key. */
import { createHash, randomBytes } from "node:crypto";
import {
  bitString,
  boolean,
  childrenOf,
  type Der,
  decodeDer,
  encodeDer,
  explicit,
  implicit,
  integer,
  isObject,
  octetString,
  octetsOf,
  oid,
  sequence,
  set,
  smallInteger,
  time,
  utf8String,
} from "./der.ts";

export interface CertificateFields {
  /** DER of a Name, byte for byte the issuer's own subject. */
  readonly issuer: Uint8Array;
  /** DER of a Name. */
  readonly subject: Uint8Array;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DER of a SubjectPublicKeyInfo. */
  readonly publicKey: Uint8Array;
  readonly extensions: readonly Der[];
}

/** What a leaf must repeat of its issuer's certificate. */
export interface IssuerIdentity {
  /** DER of a Name. */
  readonly subject: Buffer;
  readonly keyId: Buffer;
}

/** Of `crypto.X509Certificate`, whose parsing and checks are OpenSSL's; this reads two fields that it does not show. */
export interface ReadableCertificate {
  readonly raw: Uint8Array;
}

const OID_COMMON_NAME = "2.5.4.3";
const OID_ECDSA_SHA256 = "1.2.840.10045.4.3.2";
const OID_SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const OID_SUBJECT_KEY_ID = "2.5.29.14";
const OID_KEY_USAGE = "2.5.29.15";
const OID_ALTERNATIVE_NAME = "2.5.29.17";
const OID_BASIC_CONSTRAINTS = "2.5.29.19";
const OID_AUTHORITY_KEY_ID = "2.5.29.35";
const OID_EXTENDED_KEY_USAGE = "2.5.29.37";

const KEY_ID_BYTES = 20;
const SERIAL_BYTES = 16;

/** ECDSA with SHA-256, whatever the key's curve; parameters are absent (RFC 5758 section 3.2). */
const ALGORITHM = sequence(oid(OID_ECDSA_SHA256));

/** The DER of a certificate; `sign` answers with an ECDSA-Sig-Value over SHA-256. */
export function buildCertificate(fields: CertificateFields, sign: (tbs: Buffer) => Buffer): Buffer {
  const tbs = sequence(
    explicit(0, smallInteger(2)),
    integer(randomSerial()),
    ALGORITHM,
    decodeDer(fields.issuer),
    sequence(time(fields.notBefore), time(fields.notAfter)),
    decodeDer(fields.subject),
    decodeDer(fields.publicKey),
    explicit(3, sequence(...fields.extensions)),
  );
  return encodeDer(sequence(tbs, ALGORITHM, bitString(sign(encodeDer(tbs)))));
}

/** Lines of 64: a blank line at the end, as a careless split leaves one, makes OpenSSL refuse the whole. */
export function toPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** Undefined: without a subject key identifier, which a leaf must point to. Throws on what is no certificate. */
export function readIssuer(certificate: ReadableCertificate): IssuerIdentity | undefined {
  const [tbs] = childrenOf(decodeDer(certificate.raw));
  const fields = tbs === undefined ? [] : childrenOf(tbs);
  // version, serial, signature, issuer, validity, subject, key; the optional identifiers, extensions last.
  const subject = fields[5];
  const list = fields.at(-1);
  if (subject === undefined || list === undefined) return undefined;
  const found = childrenOf(list)
    .flatMap(childrenOf)
    .find((extension) => isObject(childrenOf(extension)[0], OID_SUBJECT_KEY_ID));
  const value = found === undefined ? undefined : childrenOf(found).at(-1);
  if (value === undefined) return undefined;
  return { subject: encodeDer(subject), keyId: octetsOf(decodeDer(octetsOf(value))) };
}

/** RFC 7093 section 2 method 1: of the key's bits, not of their wrapping. */
export function keyIdOf(publicKey: Uint8Array): Buffer {
  const bits = childrenOf(decodeDer(publicKey))[1];
  const key = bits === undefined ? Buffer.alloc(0) : octetsOf(bits).subarray(1);
  return createHash("sha256").update(key).digest().subarray(0, KEY_ID_BYTES);
}

/** DER of a Name; `undefined` gives the empty one. At most 64 characters (RFC 5280 appendix A.1). */
export function nameOf(commonName: string | undefined): Buffer {
  if (commonName === undefined) return encodeDer(sequence());
  return encodeDer(sequence(set(sequence(oid(OID_COMMON_NAME), utf8String(commonName)))));
}

export function subjectKeyId(keyId: Uint8Array): Der {
  return extension(OID_SUBJECT_KEY_ID, false, octetString(keyId));
}

export function authorityKeyId(keyId: Uint8Array): Der {
  return extension(OID_AUTHORITY_KEY_ID, false, sequence(implicit(0, keyId)));
}

/** A CA that signs leaves only: no further CA below it. */
export function authorityConstraints(): Der {
  return extension(OID_BASIC_CONSTRAINTS, true, sequence(boolean(true), smallInteger(0)));
}

/** CA:FALSE is the default, and DER omits defaults. */
export function leafConstraints(): Der {
  return extension(OID_BASIC_CONSTRAINTS, true, sequence());
}

/** keyCertSign and cRLSign. */
export function authorityKeyUsage(): Der {
  return extension(OID_KEY_USAGE, true, bitString(Uint8Array.of(0b0000_0110), 1));
}

/** digitalSignature: all that a P-256 key does in TLS. */
export function leafKeyUsage(): Der {
  return extension(OID_KEY_USAGE, true, bitString(Uint8Array.of(0b1000_0000), 7));
}

export function serverAuthUsage(): Der {
  return extension(OID_EXTENDED_KEY_USAGE, false, sequence(oid(OID_SERVER_AUTH)));
}

/** Of a name in A-labels, or of the 4 or 16 octets of an address. Critical where the subject is empty (RFC 5280). */
export function alternativeName(name: string | Uint8Array, critical: boolean): Der {
  const general = typeof name === "string" ? implicit(2, Buffer.from(name, "latin1")) : implicit(7, name);
  return extension(OID_ALTERNATIVE_NAME, critical, sequence(general));
}

function extension(id: string, critical: boolean, value: Der): Der {
  const wrapped = octetString(encodeDer(value));
  return critical ? sequence(oid(id), boolean(true), wrapped) : sequence(oid(id), wrapped);
}

/** Positive, and with a first octet that DER could not drop. */
function randomSerial(): Buffer {
  const serial = randomBytes(SERIAL_BYTES);
  serial.writeUInt8((serial.readUInt8(0) & 0x3f) | 0x40, 0);
  return serial;
}
