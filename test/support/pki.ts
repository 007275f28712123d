/** Throw-away certificates, right and wrong in every way that a test needs. Keys live in memory alone. */
import type { KeyObject } from "node:crypto";
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { SecureContext } from "node:tls";
import { createSecureContext } from "node:tls";

export interface LeafOptions {
  /** DNS names of the subject alternative name. Empty: the extension is left out. */
  readonly names?: readonly string[];
  /** IPv4 literals of the same extension. */
  readonly addresses?: readonly string[];
  /** Default: the first name. */
  readonly commonName?: string;
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  /** Signed by its own key instead of the authority's. */
  readonly selfSigned?: boolean;
  readonly isAuthority?: boolean;
  /** Of a client, not of a server. */
  readonly forClient?: boolean;
}

export interface Certificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Authority extends Certificate {
  issue(options: LeafOptions): Certificate;
  /** A server's context with a leaf for these names. */
  context(...names: readonly string[]): SecureContext;
}

interface Signer {
  readonly name: string;
  readonly key: KeyObject;
}

const DAY = 86_400_000;
const OID = {
  ecdsaWithSha256: "06082a8648ce3d040302",
  commonName: "0603550403",
  basicConstraints: "0603551d13",
  subjectAltName: "0603551d11",
  extendedKeyUsage: "0603551d25",
  serverAuth: "06082b06010505070301",
  clientAuth: "06082b06010505070302",
};

/** Its own key, or the one given. */
export function createAuthority(name: string, privateKeyPem?: string): Authority {
  const key = createPrivateKey(privateKeyPem ?? pemOfKey(newKey()));
  const signer = { name, key };
  const certPem = build({ commonName: name, isAuthority: true }, createPublicKey(key), signer);
  function issue(options: LeafOptions): Certificate {
    const leaf = newKey();
    const commonName = options.commonName ?? options.names?.[0] ?? "leaf";
    const by = options.selfSigned === true ? { name: commonName, key: leaf } : signer;
    return {
      certPem: build({ ...options, commonName }, createPublicKey(leaf), by),
      keyPem: pemOfKey(leaf),
    };
  }
  return {
    certPem,
    keyPem: pemOfKey(key),
    issue,
    context(...names) {
      const leaf = issue({ names });
      return createSecureContext({ cert: leaf.certPem, key: leaf.keyPem });
    },
  };
}

function build(options: LeafOptions & { commonName: string }, key: KeyObject, by: Signer): string {
  const algorithm = der(0x30, hex(OID.ecdsaWithSha256));
  const validity = der(
    0x30,
    time(options.notBefore ?? new Date(Date.now() - DAY)),
    time(options.notAfter ?? new Date(Date.now() + 30 * DAY)),
  );
  const serial = Buffer.concat([Buffer.of(0x01), randomBytes(15)]);
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, serial),
    algorithm,
    distinguishedName(by.name),
    validity,
    distinguishedName(options.commonName),
    key.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, ...extensions(options))),
  );
  const signature = sign("sha256", body, by.key);
  const certificate = der(0x30, body, algorithm, der(0x03, Buffer.of(0), signature));
  const lines = (certificate.toString("base64").match(/.{1,64}/g) ?? []).join("\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function extensions(options: LeafOptions): readonly Buffer[] {
  const list = [
    extension(OID.basicConstraints, der(0x30, options.isAuthority === true ? hex("0101ff") : hex(""))),
  ];
  const purpose = options.forClient === true ? OID.clientAuth : OID.serverAuth;
  if (options.isAuthority !== true) list.push(extension(OID.extendedKeyUsage, der(0x30, hex(purpose))));
  const names = (options.names ?? []).map((name) => der(0x82, Buffer.from(name, "latin1")));
  const addresses = (options.addresses ?? []).map((text) =>
    der(0x87, Buffer.from(text.split(".").map(Number))),
  );
  const alternatives = [...names, ...addresses];
  if (alternatives.length > 0) list.push(extension(OID.subjectAltName, der(0x30, ...alternatives)));
  return list;
}

function extension(oid: string, value: Buffer): Buffer {
  return der(0x30, hex(oid), der(0x04, value));
}

function distinguishedName(commonName: string): Buffer {
  return der(0x30, der(0x31, der(0x30, hex(OID.commonName), der(0x0c, Buffer.from(commonName)))));
}

function time(date: Date): Buffer {
  // RFC 5280 section 4.1.2.5: UTCTime through the year 2049.
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, "");
  return der(0x17, Buffer.from(digits.slice(2)));
}

function newKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function hex(text: string): Buffer {
  return Buffer.from(text, "hex");
}

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 128) return Buffer.concat([Buffer.of(tag, content.length), content]);
  const size = hex(content.length.toString(16).padStart(content.length > 255 ? 4 : 2, "0"));
  return Buffer.concat([Buffer.of(tag, 0x80 | size.length), size, content]);
}
