/** Values to DER and back, on node-forge's ASN.1. Knows types, not certificates. Pure. */
import type { asn1 as Asn1 } from "node-forge";
import asn1 from "node-forge/lib/asn1.js";

export type Der = Asn1.Asn1;

const { Class, Type } = asn1;

export function encodeDer(value: Der): Buffer {
  return Buffer.from(asn1.toDer(value).getBytes(), "latin1");
}

/** Throws on anything that is not one whole DER value. */
export function decodeDer(bytes: Uint8Array): Der {
  return asn1.fromDer(Buffer.from(bytes).toString("latin1"), {
    strict: true,
    parseAllBytes: true,
    decodeBitStrings: false,
  });
}

export function sequence(...values: Der[]): Der {
  return asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, values);
}

export function set(...values: Der[]): Der {
  return asn1.create(Class.UNIVERSAL, Type.SET, true, values);
}

export function oid(dotted: string): Der {
  return asn1.create(Class.UNIVERSAL, Type.OID, false, asn1.oidToDer(dotted).getBytes());
}

/** A whole number in as few octets as DER asks for; the first must not make it negative. */
export function integer(octets: Uint8Array): Der {
  return primitive(Type.INTEGER, octets);
}

export function smallInteger(value: number): Der {
  return primitive(Type.INTEGER, Uint8Array.of(value));
}

export function boolean(value: boolean): Der {
  return primitive(Type.BOOLEAN, Uint8Array.of(value ? 0xff : 0));
}

export function octetString(octets: Uint8Array): Der {
  return primitive(Type.OCTETSTRING, octets);
}

/** `unused`: how many low bits of the last octet do not count. */
export function bitString(octets: Uint8Array, unused = 0): Der {
  return primitive(Type.BITSTRING, Buffer.concat([Uint8Array.of(unused), octets]));
}

export function utf8String(text: string): Der {
  return primitive(Type.UTF8, Buffer.from(text, "utf8"));
}

/** Two octets a character, which the encoder makes: for text of the Basic Multilingual Plane alone. */
export function bmpString(text: string): Der {
  return asn1.create(Class.UNIVERSAL, Type.BMPSTRING, false, text);
}

/** UTCTime until 2049, GeneralizedTime from then on (RFC 5280 section 4.1.2.5). */
export function time(date: Date): Der {
  return date.getUTCFullYear() < 2050
    ? asn1.create(Class.UNIVERSAL, Type.UTCTIME, false, asn1.dateToUtcTime(date))
    : asn1.create(Class.UNIVERSAL, Type.GENERALIZEDTIME, false, asn1.dateToGeneralizedTime(date));
}

/** `[number] EXPLICIT`. */
export function explicit(number: number, value: Der): Der {
  return asn1.create(Class.CONTEXT_SPECIFIC, number, true, [value]);
}

/** `[number] IMPLICIT` of a string type. */
export function implicit(number: number, octets: Uint8Array): Der {
  return asn1.create(Class.CONTEXT_SPECIFIC, number, false, Buffer.from(octets).toString("latin1"));
}

/** The parts of a constructed value; none of a primitive one. */
export function childrenOf(value: Der): readonly Der[] {
  return Array.isArray(value.value) ? value.value : [];
}

/** The content of a primitive value; empty for a constructed one. */
export function octetsOf(value: Der): Buffer {
  return Buffer.from(typeof value.value === "string" ? value.value : "", "latin1");
}

export function isObject(value: Der | undefined, dotted: string): boolean {
  return value?.type === Type.OID && octetsOf(value).toString("latin1") === asn1.oidToDer(dotted).getBytes();
}

function primitive(type: Asn1.Type, octets: Uint8Array): Der {
  return asn1.create(Class.UNIVERSAL, type, false, Buffer.from(octets).toString("latin1"));
}
