/** The gate's own certificate authority: made once in a directory, loaded from there ever after. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { join } from "node:path";
import { Failure } from "../model/failure.ts";
import { KEY_FILE, publishPair, readPair } from "./ca-files.ts";
import {
  authorityConstraints,
  authorityKeyId,
  authorityKeyUsage,
  buildCertificate,
  keyIdOf,
  nameOf,
  readIssuer,
  subjectKeyId,
  toPem,
} from "./certificate.ts";
import { makeFolder } from "./make-folder.ts";

export interface Ca {
  readonly certificatePem: string;
  /** SHA-256 of the certificate, upper-case hex with colons. */
  readonly fingerprint: string;
  readonly notAfter: Date;
  /** DER of the name that leaves carry as their issuer. */
  readonly subject: Uint8Array;
  /** The subject key identifier that leaves point to. */
  readonly keyId: Uint8Array;
  /** ECDSA with SHA-256 over a TBSCertificate, as DER. */
  sign(tbs: Uint8Array): Buffer;
}

const DAY = 86_400_000;
const LIFETIME = 5 * 365 * DAY;
/** For clients whose clock is behind. */
const BACKDATED = DAY;

/**
 * Loads the authority in `dir`, or makes one where the directory holds neither of its files. Of several processes that
 * start at once one makes it and the others load that. Throws `E_CONFIG`, which says what to do, on half a pair, a
 * pair that does not fit, a key that others may read, an expired or unreadable file.
 */
export function openCa(dir: string, now: Date = new Date()): Ca {
  try {
    makeFolder(dir, 0o700);
  } catch (error) {
    throw misconfigured(`The CA directory ${dir} cannot be made; name another in ca.dir`, error);
  }
  const found = readPair(dir);
  if (found !== undefined) return load(dir, found, now);
  publishPair(dir, makePair(now));
  const made = readPair(dir);
  if (made === undefined)
    throw misconfigured(`The CA in ${dir} vanished while it was being made; start again`);
  return load(dir, made, now);
}

function makePair(now: Date): { readonly certificate: string; readonly key: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const spki = publicKey.export({ type: "spki", format: "der" });
  const keyId = keyIdOf(spki);
  // The suffix tells two installations apart in a trust store.
  const name = nameOf(`Sallyport CA ${randomBytes(4).toString("hex")}`);
  const der = buildCertificate(
    {
      issuer: name,
      subject: name,
      notBefore: new Date(now.getTime() - BACKDATED),
      notAfter: new Date(now.getTime() + LIFETIME),
      publicKey: spki,
      extensions: [authorityConstraints(), authorityKeyUsage(), subjectKeyId(keyId), authorityKeyId(keyId)],
    },
    (tbs) => sign("sha256", tbs, privateKey),
  );
  return { certificate: toPem(der), key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

function load(dir: string, pair: { readonly certificate: string; readonly key: string }, now: Date): Ca {
  const certificate = parseCertificate(dir, pair.certificate);
  const key = parseKey(dir, pair.key);
  if (!certificate.checkPrivateKey(key)) {
    throw misconfigured(
      `The CA certificate and key in ${dir} do not belong together; restore one or remove both`,
    );
  }
  if (key.asymmetricKeyDetails?.namedCurve !== "prime256v1") {
    throw misconfigured(`The CA key in ${dir} is not a P-256 key; replace the pair or remove both files`);
  }
  const issuer = certificate.ca ? readIssuer(certificate) : undefined;
  if (issuer === undefined) {
    throw misconfigured(
      `The certificate in ${dir} is no CA with a key identifier; replace the pair or remove both files`,
    );
  }
  const notAfter = new Date(certificate.validTo);
  // A NaN, of a date that could not be read, must not pass for valid.
  if (!(notAfter > now)) {
    throw misconfigured(
      `The CA in ${dir} has expired; remove both files to have another made, and trust that`,
    );
  }
  if (!(new Date(certificate.validFrom) <= now)) {
    throw misconfigured(`The CA in ${dir} is not valid yet; set this machine's clock`);
  }
  return {
    certificatePem: certificate.toString(),
    fingerprint: certificate.fingerprint256,
    notAfter,
    subject: issuer.subject,
    keyId: issuer.keyId,
    sign: (tbs) => sign("sha256", tbs, key),
  };
}

function parseCertificate(dir: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw misconfigured(
      `The CA certificate in ${dir} cannot be read; restore it or remove both files`,
      error,
    );
  }
}

function parseKey(dir: string, pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    createPublicKey(key);
    return key;
  } catch {
    // No cause: whatever names the key's text stays out of every message.
    throw misconfigured(`The CA key ${join(dir, KEY_FILE)} cannot be read; restore it or remove both files`);
  }
}

function misconfigured(message: string, cause?: unknown): Failure {
  return new Failure("E_CONFIG", "operator", message, { cause });
}
