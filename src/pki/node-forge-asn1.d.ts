/** The types of node-forge's ASN.1 part, which is loaded alone: all of node-forge costs 40 ms at every start. */
declare module "node-forge/lib/asn1.js" {
  import type { asn1 } from "node-forge";

  interface DecodeOptions {
    readonly strict: boolean;
    readonly parseAllBytes: boolean;
    readonly decodeBitStrings: boolean;
  }

  const part: Omit<typeof asn1, "fromDer"> & {
    fromDer(bytes: string, options: DecodeOptions): asn1.Asn1;
  };
  export = part;
}
