/** The names that a request claims, and its target as an origin would see it. Pure. */
import type { Authority, Claims } from "../model/arrival.ts";
import type { Scheme } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import { parseAuthority } from "../wire/authority.ts";
import type { ParsedRequest } from "../wire/request-head.ts";
import { parseAbsoluteForm, parseAuthorityForm } from "../wire/request-target.ts";

export interface Claimed {
  readonly claims: Claims;
  /** Origin-form, `*`, or for CONNECT the authority. */
  readonly target: string;
}

/** Throws `E_BAD_REQUEST` where a name cannot be read, or the target's scheme is not the connection's. */
export function claimsOf(request: ParsedRequest, scheme: Scheme): Claimed {
  const { authority, target } = ofTarget(request, scheme);
  const usual = request.method === "CONNECT" && authority !== undefined ? authority.port : portOf(scheme);
  return {
    target,
    claims: {
      authority,
      host: request.host === undefined ? undefined : parseAuthority(request.host, usual),
      proxyAuthorization: proxyAuthorizationOf(request),
    },
  };
}

function ofTarget(
  request: ParsedRequest,
  scheme: Scheme,
): { authority: Authority | undefined; target: string } {
  if (request.form === "authority") {
    return { authority: parseAuthorityForm(request.rawTarget), target: request.rawTarget };
  }
  if (request.form !== "absolute") return { authority: undefined, target: request.rawTarget };
  const absolute = parseAbsoluteForm(request.rawTarget, request.method);
  // D09: `https://` in clear is never quietly sent in clear.
  if (absolute.scheme !== scheme) {
    const message =
      absolute.scheme === "https"
        ? "An https URL needs CONNECT; this request came in clear"
        : "An http URL came in through an encrypted connection";
    throw new Failure("E_BAD_REQUEST", "client", message);
  }
  return absolute;
}

/** Two of them are refused: which would be believed? */
function proxyAuthorizationOf(request: ParsedRequest): string | undefined {
  const found = request.fields.filter(({ key }) => key === "proxy-authorization");
  if (found.length > 1) {
    throw new Failure("E_BAD_REQUEST", "client", "More than one Proxy-Authorization field");
  }
  return found[0]?.value;
}

function portOf(scheme: Scheme): number {
  return scheme === "https" ? 443 : 80;
}
