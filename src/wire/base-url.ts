/** The target of a base-URL request: `/~id:token/host:port/path`, taken apart. Pure. */
import { type Authority, parseAuthority } from "./authority.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface BaseUrl {
  /** What stands before the upstream's path, as the client wrote it: `/api.example.com`. May hold a token. */
  readonly base: string;
  /** `id:token` in latin1, where the path began with it; percent-escapes are decoded. */
  readonly credentials: string | undefined;
  readonly authority: Authority;
  /** What the upstream is asked for, byte for byte: origin-form, `/` where nothing follows the host. */
  readonly target: string;
}

const TARGET = /^(\/(?:~([^/?]*)\/)?([^/?]*))(.*)$/;
const HTTPS_PORT = 443;

/** `target` is in origin-form. The host is not decoded: what a policy decides on has one spelling. Throws `E_BAD_REQUEST`. */
export function parseBaseUrl(target: string): BaseUrl {
  const [, base, credentials, host, rest] = TARGET.exec(target) ?? [];
  if (base === undefined || host === undefined || rest === undefined || host === "") {
    throw protocolFailure("client", "A base URL names its host in the first segment of the path");
  }
  return {
    base,
    credentials: credentials === undefined ? undefined : decoded(credentials),
    authority: parseAuthority(host, HTTPS_PORT),
    target: rest.startsWith("/") ? rest : `/${rest}`,
  };
}

/** An escape that is none stays as it is: it then is a character of the token. */
function decoded(text: string): string {
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
