/** TLS towards upstreams: one set of roots, one way to verify, nothing said before it has succeeded. */
import { constants, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { connect, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import type { Hostname, IpAddress } from "../model/exchange.ts";
import { Failure } from "../model/failure.ts";
import type { ClientIdentity } from "../model/leg.ts";
import { systemRoots } from "../pki/system-roots.ts";

/** Whom the certificate must be for. A `Destination` is one. */
export type UpstreamHost =
  | { readonly kind: "name"; readonly host: Hostname }
  | { readonly kind: "address"; readonly address: IpAddress };

export interface SecureOptions {
  readonly timeoutMs: number;
  /** The very buffer that `onSession` gave, for the same sandbox, port and policy. For another host it is ignored. */
  readonly session?: Buffer | undefined;
  /** Offered in this order; empty: no ALPN. */
  readonly alpn: readonly string[];
  readonly signal: AbortSignal;
  /** Shown to an upstream that asks; each has its own sessions. */
  readonly identity?: ClientIdentity | undefined;
  /** Called with sessions of this connection, once it is verified and as often as the upstream sends one. */
  readonly onSession?: ((session: Buffer) => void) | undefined;
}

export interface UpstreamTls {
  /**
   * Takes `socket` over. Resolves once the handshake is done and the certificate verified; each way to fail is
   * `E_UPSTREAM_TLS`, without a word of the certificate, and leaves `socket` destroyed.
   */
  secure(socket: Socket, host: UpstreamHost, options: SecureOptions): Promise<TLSSocket>;
}

/** What a session inherits from the handshake that verified a certificate: resumed, TLS shows none to check again. */
interface Verification {
  /** Canonical text of the name or address that the certificate was for. */
  readonly host: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

interface Room {
  readonly context: SecureContext;
  readonly verifications: WeakMap<Buffer, Verification>;
}

/** As `forward/dial.ts` has it for the socket below. */
const HIGH_WATER_MARK = 65_536;
/** Bits of a finite-field Diffie-Hellman group; smaller ones are broken (Logjam). */
const MIN_DH_BITS = 2_048;
/** However often it is resumed, a session leads back to a certificate that was looked at within a day. */
const VERIFIED_MS = 86_400_000;
const MAX_FILE_BYTES = 16_777_216;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);
const CUT_OFF = new Set(["ECONNRESET", "EPIPE", "ECONNABORTED"]);

/** `caFile`: PEM, added to the system's roots. Throws `E_CONFIG` where it cannot be used. Takes 50 ms: call it once. */
export function createUpstreamTls({ caFile }: { readonly caFile: string | undefined }): UpstreamTls {
  const ca = [...systemRoots(), ...(caFile === undefined ? [] : readRoots(caFile))];
  const nobody = openRoom(ca, undefined);
  const rooms = new WeakMap<ClientIdentity, Room>();

  function roomOf(identity: ClientIdentity | undefined): Room {
    if (identity === undefined) return nobody;
    const room = rooms.get(identity) ?? openRoom(ca, identity);
    rooms.set(identity, room);
    return room;
  }

  return {
    secure(socket, host, options) {
      try {
        return secure(roomOf(options.identity), socket, host, options);
      } catch {
        // A certificate and key that OpenSSL does not take, though they were read.
        socket.destroy();
        return Promise.reject(failed("The client certificate cannot be used"));
      }
    },
  };
}

function openRoom(ca: readonly string[], identity: ClientIdentity | undefined): Room {
  const context = createSecureContext({
    ca: [...ca],
    minVersion: "TLSv1.2",
    // An upstream that wants another handshake in mid-connection does not get it.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(identity === undefined ? {} : { cert: identity.cert, key: identity.key }),
    ...(identity?.passphrase === undefined ? {} : { passphrase: identity.passphrase }),
  });
  return { context, verifications: new WeakMap() };
}

function secure(room: Room, socket: Socket, host: UpstreamHost, options: SecureOptions): Promise<TLSSocket> {
  const { signal, timeoutMs, onSession } = options;
  return new Promise((resolve, reject) => {
    if (signal.aborted || socket.destroyed) {
      socket.destroy();
      reject(signal.aborted ? abandoned(signal) : failed("The upstream closed the connection"));
      return;
    }
    const inherited = inheritedFrom(room, host, options.session);
    const secured = open(room, socket, host, inherited === undefined ? withoutSession(options) : options);
    const deadline = setTimeout(() => fail(timedOut()), timeoutMs);
    const abandon = () => fail(abandoned(signal));
    signal.addEventListener("abort", abandon, { once: true });
    let verified: Verification | undefined;
    // Stays for good: a socket without one would take the process down.
    secured.on("error", (error) => fail(failureOf(error)));
    secured.once("close", () => fail(failed("The upstream closed the connection during the handshake")));
    secured.on("session", (session) => {
      if (verified === undefined) return;
      room.verifications.set(session, verified);
      onSession?.(session);
    });
    secured.once("secureConnect", () => {
      verified = secured.isSessionReused() ? inherited : verify(secured, host);
      if (verified === undefined || !secured.authorized) {
        return fail(failed("The upstream's certificate is for another name"));
      }
      finish();
      resolve(secured);
    });

    function finish(): void {
      clearTimeout(deadline);
      signal.removeEventListener("abort", abandon);
    }
    function fail(failure: Failure): void {
      finish();
      if (verified === undefined) secured.destroy();
      reject(failure);
    }
  });
}

function open({ context }: Room, socket: Socket, host: UpstreamHost, options: SecureOptions): TLSSocket {
  const tuning = { highWaterMark: HIGH_WATER_MARK };
  return connect({
    ...tuning,
    socket,
    secureContext: context,
    // `host` dials nothing here: Node binds a session to it. No SNI for literals (RFC 6066 section 3).
    host: textOf(host),
    ...(host.kind === "name" ? { servername: host.host } : {}),
    ...(options.alpn.length > 0 ? { ALPNProtocols: [...options.alpn] } : {}),
    ...(options.session === undefined ? {} : { session: options.session }),
    // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED has no say.
    rejectUnauthorized: true,
    // The name is checked after the handshake: Node's own check takes a bare CN.
    checkServerIdentity: () => undefined,
    minDHSize: MIN_DH_BITS,
  });
}

/** Undefined: the leaf is not for `host` by a subjectAltName of the right kind (RFC 9525). The chain is good already. */
function verify(secured: TLSSocket, host: UpstreamHost): Verification | undefined {
  const certificate = secured.getPeerX509Certificate();
  const match =
    host.kind === "address"
      ? certificate?.checkIP(host.address.text)
      : certificate?.checkHost(host.host, { subject: "never", wildcards: true, partialWildcards: false });
  if (certificate === undefined || match === undefined) return undefined;
  const until = Math.min(Date.parse(certificate.validTo), Date.now() + VERIFIED_MS);
  return { host: textOf(host), until };
}

/** Undefined: the session is not one that this room verified for `host`, or that was too long ago. */
function inheritedFrom(
  { verifications }: Room,
  host: UpstreamHost,
  session: Buffer | undefined,
): Verification | undefined {
  const verification = session === undefined ? undefined : verifications.get(session);
  if (verification === undefined || verification.host !== textOf(host)) return undefined;
  return Date.now() < verification.until ? verification : undefined;
}

function withoutSession(options: SecureOptions): SecureOptions {
  return { ...options, session: undefined };
}

function textOf(host: UpstreamHost): string {
  return host.kind === "name" ? host.host : host.address.text;
}

function readRoots(file: string): string[] {
  const roots = readText(file).match(CERTIFICATE) ?? [];
  if (roots.length === 0) throw misconfigured(`upstream.ca_file ${file} holds no PEM certificate`);
  for (const [index, pem] of roots.entries()) {
    try {
      new X509Certificate(pem);
    } catch {
      throw misconfigured(`Certificate ${index + 1} of upstream.ca_file ${file} cannot be read`);
    }
  }
  return roots;
}

function readText(file: string): string {
  try {
    const text = readFileSync(file, "latin1");
    if (text.length <= MAX_FILE_BYTES) return text;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw misconfigured(`upstream.ca_file ${file} cannot be read (${code})`);
  }
  throw misconfigured(`upstream.ca_file ${file} is larger than 16 MiB`);
}

/** The kind of trouble alone: OpenSSL's and Node's own words quote the certificate. */
function failureOf(error: Error): Failure {
  const code = "code" in error ? String(error.code) : "";
  if (code === "CERT_HAS_EXPIRED") return failed("The upstream's certificate has expired");
  if (code === "CERT_NOT_YET_VALID") return failed("The upstream's certificate is not valid yet");
  if (UNTRUSTED.has(code)) return failed("The upstream's certificate is not from a trusted authority");
  if (CUT_OFF.has(code)) return failed("The upstream closed the connection during the handshake");
  if (code.startsWith("ERR_SSL_") || code === "EPROTO")
    return failed("The upstream does not speak acceptable TLS");
  return failed("The upstream's certificate or handshake is not acceptable");
}

function failed(message: string): Failure {
  return new Failure("E_UPSTREAM_TLS", "upstream", message);
}

function timedOut(): Failure {
  return new Failure("E_UPSTREAM_TLS", "upstream", "The upstream did not finish the handshake in time", {
    status: 504,
  });
}

function abandoned({ reason }: AbortSignal): Failure {
  return reason instanceof Failure
    ? reason
    : new Failure("E_UPSTREAM_TLS", "client", "Nobody waits for the upstream any more");
}

function misconfigured(message: string): Failure {
  return new Failure("E_CONFIG", "operator", message);
}
