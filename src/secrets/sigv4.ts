/** Signs a request by AWS Signature Version 4. The only adapter of `@smithy/signature-v4`, loaded where one is signed. */
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";

export interface SigningKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
}

export interface Signable {
  readonly method: string;
  /** As it leaves: it is not touched. */
  readonly path: string;
  readonly query: Readonly<Record<string, readonly string[]>>;
  /** Lower-case names; `host` among them. */
  readonly headers: Readonly<Record<string, string>>;
  /** Hex, or a word that stands for a body which is not signed. */
  readonly payloadHash: string;
}

export interface Scope {
  readonly region: string;
  readonly service: string;
}

/** The fields that make it signed, by lower-case name. */
export async function signSigV4(
  { method, path, query, headers, payloadHash }: Signable,
  { accessKeyId, secretAccessKey, sessionToken }: SigningKeys,
  { region, service }: Scope,
): Promise<Readonly<Record<string, string>>> {
  const credentials = {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  };
  // S3 alone takes paths as they are; all others encode them once more.
  const uriEscapePath = service !== "s3";
  const signer = new QuerySigner({ credentials, region, service, sha256: Sha256, uriEscapePath }, query);
  const signed = await signer.sign({
    method,
    protocol: "https:",
    hostname: headers["host"] ?? "",
    path,
    query: {},
    headers: { ...headers, "x-amz-content-sha256": payloadHash },
  });
  const names = ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = signed.headers[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

export function payloadHash(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex");
}

type Order = Parameters<SignatureV4["presign"]>[0];

/** The library copies a query in time that grows with its square; here it sees the query where it is written down. */
class QuerySigner extends SignatureV4 {
  readonly #query: NonNullable<Order["query"]>;

  constructor(options: ConstructorParameters<typeof SignatureV4>[0], query: Signable["query"]) {
    super(options);
    this.#query = Object.fromEntries(Object.entries(query).map(([key, values]) => [key, [...values]]));
  }

  protected override createCanonicalRequest(order: Order, headers: Order["headers"], hash: string): string {
    return super.createCanonicalRequest({ ...order, query: this.#query }, headers, hash);
  }
}

/** What the library asks of a hash; with a key it is an HMAC. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash("sha256") : createHmac("sha256", bytesOf(key));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === "string") return Buffer.from(data, "utf8");
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}
