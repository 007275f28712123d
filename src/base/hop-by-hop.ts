/** Which fields belong to one hop and end there. Pure. */
import type { FieldLines } from "../model/exchange.ts";

/** RFC 9110 section 7.6.1 and the older names that clients still send. */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

export function isConnectionSpecific(key: string): boolean {
  return CONNECTION_SPECIFIC.has(key);
}

/** The keys that every `Connection` field together nominates; undefined where none does (golang/go#46313). */
export function nominatedKeys(fields: FieldLines): ReadonlySet<string> | undefined {
  let keys: Set<string> | undefined;
  for (const field of fields) {
    if (field.key !== "connection") continue;
    for (const option of field.value.toLowerCase().split(",")) {
      const key = option.trim();
      if (key === "" || key === "close" || key === "keep-alive") continue;
      keys ??= new Set();
      keys.add(key);
    }
  }
  return keys;
}
