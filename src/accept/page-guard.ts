/** Whether a base-URL request may come from a web page, which must not spend a sandbox's credentials. Pure. */
import type { FieldLines } from "../model/exchange.ts";
import { parseAuthority } from "../wire/authority.ts";

/** Where the request came in. */
export interface Place {
  /** Of the accepted socket, canonical text. */
  readonly address: string;
  readonly port: number;
  /** The listener stands at every address: ports may be mapped to it, so any literal address is its own. */
  readonly everywhere: boolean;
}

const HTTP_PORT = 80;
/** A page that is not there cannot be another site's: the person typed the URL. */
const OWN_SITE: ReadonlySet<string> = new Set(["same-origin", "none"]);

/**
 * `host` is the one Host field of the request. A name other than `localhost` is refused, since its owner decides where
 * it points (DNS rebinding); so is what a browser says of a page elsewhere. `same-site` is elsewhere too: another port
 * of this machine is another program.
 */
export function isCrossSite(host: string | undefined, fields: FieldLines, place: Place): boolean {
  if (host === undefined || !isOwnHost(host, place)) return true;
  const own = `http://${host.toLowerCase()}`;
  return fields.some(
    ({ key, value }) =>
      (key === "origin" && value.toLowerCase() !== own) || (key === "sec-fetch-site" && !OWN_SITE.has(value)),
  );
}

/** Throws `E_BAD_REQUEST` where it is no authority. */
function isOwnHost(text: string, { address, port, everywhere }: Place): boolean {
  const { host, port: named } = parseAuthority(text, HTTP_PORT);
  if (!everywhere && named !== port) return false;
  if (host.kind === "name") return host.name === "localhost";
  return everywhere || host.address.text === address;
}
