/** What of a request is signed, and what keeps it from being signed. Pure. */
import type { Field, RequestHead } from "../model/exchange.ts";
import type { SigningSource } from "../model/signing.ts";

export interface Parts {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, readonly string[]>>;
  readonly headers: Readonly<Record<string, string>>;
}

export type Signability =
  | { readonly parts: Parts; readonly problem?: undefined }
  | { readonly problem: string };

/** Body hashes of clients that send checksums behind an unsigned body: they stand for the body as it is. */
export const TRAILING = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
/** Of a query, so that a signature never takes long; the services' own queries have a few dozen. */
const MAX_PARAMETERS = 1_000;
/** Beginnings of actions of STS and IAM that answer with credentials, which a sandbox would then hold itself. */
export const MINTING: readonly string[] = [
  "AssumeRo",
  "GetSessionToken",
  "GetFederationToken",
  "CreateAccessKey",
  "CreateServiceSpecificCredential",
];
const HASH = "x-amz-content-sha256";
const REPLACED: ReadonlySet<string> = new Set(["authorization", "x-amz-date", HASH, "x-amz-security-token"]);

/** `problem` is for the client to read. */
export function signableOf(head: RequestHead, signing: SigningSource): Signability {
  const [path = "/", search = ""] = split(head.target);
  const pairs = search.split("&");
  if (pairs.length > MAX_PARAMETERS)
    return { problem: `A query of over ${MAX_PARAMETERS} parameters is not signed` };
  const query = parseQuery(pairs);
  if (query === undefined)
    return { problem: "The query is not percent-encoded UTF-8, so it cannot be signed" };
  const presigned = Object.keys(query).some((key) => /^x-amz-(?:signature|credential|algorithm)$/i.test(key));
  if (presigned) return { problem: "A presigned URL brings its own signature; leave it out" };
  if (mintsSessions(head, query)) return { problem: "Credentials cannot be used to get others" };
  const claimed = claimedHash(head);
  if (claimed?.startsWith("STREAMING-") === true && !(claimed === TRAILING && signing.unsignedPayload)) {
    return { problem: "A body that is signed in chunks cannot be signed again; send it plain" };
  }
  return { parts: { method: head.method, path, query, headers: headersOf(head) } };
}

/** What the client says of its body. */
export function claimedHash({ fields }: RequestHead): string | undefined {
  return fields.find(({ key }) => key === HASH)?.value;
}

/** The signature's fields in the place of the client's own, and no word of waiting: the body is there. */
export function withSignature(head: RequestHead, signed: Readonly<Record<string, string>>): RequestHead {
  const kept = head.fields.filter(({ key }) => !REPLACED.has(key.replaceAll("_", "-")) && key !== "expect");
  const added: readonly Field[] = Object.entries(signed).map(([key, value]) => ({ name: key, key, value }));
  const { sensitive } = head;
  const marked = sensitive === undefined ? {} : { sensitive: [...sensitive, ...Object.keys(signed)] };
  return { ...head, fields: [...kept, ...added], ...marked };
}

function split(target: string): readonly string[] {
  const at = target.indexOf("?");
  return at === -1 ? [target] : [target.slice(0, at), target.slice(at + 1)];
}

function parseQuery(pairs: readonly string[]): Parts["query"] | undefined {
  const query: Record<string, string[]> = Object.create(null);
  for (const pair of pairs) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    const key = decode(at === -1 ? pair : pair.slice(0, at));
    const value = decode(at === -1 ? "" : pair.slice(at + 1));
    if (key === undefined || value === undefined) return undefined;
    query[key] ??= [];
    query[key].push(value);
  }
  return query;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** STS by another name: the host says so, or the action. */
function mintsSessions(head: RequestHead, query: Parts["query"]): boolean {
  const host = head.fields.find(({ key }) => key === "host")?.value ?? "";
  const actions = query["Action"] ?? [];
  return (
    /(?:^|\.)sts[.-]/i.test(host) ||
    actions.some((action) => MINTING.some((begin) => action.startsWith(begin)))
  );
}

/** `Host`, the body's type, and all of AWS's own: what says what the request does. */
function headersOf({ fields }: RequestHead): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const { key, value } of fields) {
    const name = key.replaceAll("_", "-");
    if (
      REPLACED.has(name) ||
      !(
        name === "host" ||
        name.startsWith("content-md5") ||
        name === "content-type" ||
        key.startsWith("x-amz-")
      )
    )
      continue;
    const before = headers[key];
    headers[key] = before === undefined ? value : `${before},${value}`;
  }
  return headers;
}
