/** Request targets that name their destination: absolute-form and authority-form (RFC 9112 section 3.2). Pure. */
import { type Authority, parseAuthority, parseAuthorityWithPort } from "./authority.ts";
import { protocolFailure } from "./protocol-failure.ts";

export interface AbsoluteTarget {
  readonly scheme: "http" | "https";
  readonly authority: Authority;
  /** What goes to the upstream: origin-form, byte for byte; `/` for an empty path, `*` where OPTIONS has none. */
  readonly target: string;
}

/** No blank, control, non-ASCII byte or fragment has a place in a target; userinfo and an empty host fail as an authority. */
const ABSOLUTE = /^(https?):\/\/([^/?#]*)([/?][!-"$-~]*)?$/i;
const PORTS = { http: 80, https: 443 };

/** `method` matters to OPTIONS alone (RFC 9112 section 3.2.4). Throws `E_BAD_REQUEST`. */
export function parseAbsoluteForm(raw: string, method = "GET"): AbsoluteTarget {
  const match = ABSOLUTE.exec(raw);
  if (match === null) {
    throw protocolFailure("client", "Malformed absolute-form target");
  }
  const scheme = String(match[1]).toLowerCase() === "https" ? "https" : "http";
  return {
    scheme,
    authority: parseAuthority(String(match[2]), PORTS[scheme]),
    target: originForm(match[3], method),
  };
}

/** The target of CONNECT: host and port, both required. Throws `E_BAD_REQUEST`. */
export function parseAuthorityForm(raw: string): Authority {
  return parseAuthorityWithPort(raw);
}

function originForm(rest: string | undefined, method: string): string {
  if (rest === undefined) {
    return method === "OPTIONS" ? "*" : "/";
  }
  return rest.startsWith("?") ? `/${rest}` : rest;
}
