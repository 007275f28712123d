/** TLS alerts for connections that are refused before there is a handshake (RFC 8446 section 6). Pure. */

/** Descriptions in use, by their names in the RFC. */
export const ALERT = {
  handshakeFailure: 40,
  accessDenied: 49,
  decodeError: 50,
  unrecognizedName: 112,
} as const;

const ALERT_RECORD = 21;
const FATAL = 2;

/** One record with one fatal alert. Its version is the one that every client reads before it has negotiated. */
export function tlsAlert(description: number): Buffer {
  return Buffer.from([ALERT_RECORD, 3, 3, 0, 2, FATAL, description]);
}
