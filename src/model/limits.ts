/** Every limit, its unit and its default. docs/config.md has a row for each; a test compares the two. */

/** Times in milliseconds, sizes in bytes, the rest are counts. */
export interface Limits {
  /** A request or response head, start line included. */
  readonly head_bytes: number;
  readonly head_fields: number;
  readonly target_bytes: number;
  /** Chunk extensions of one body, dropped but counted (CVE-2024-22019). */
  readonly chunk_extension_bytes: number;
  readonly trailer_bytes: number;
  /** A ClientHello, all its records. */
  readonly hello_bytes: number;
  /** Interim responses before a final one. */
  readonly interim_responses: number;
  /** From accept, or from the first byte of a head, until the head is whole. */
  readonly head_timeout: number;
  readonly handshake_timeout: number;
  /** Resolving, dialling and the upstream's handshake, together. */
  readonly connect_timeout: number;
  /** From the request's end until the response's head. */
  readonly response_timeout: number;
  /** Without a byte in either direction while a body is on its way. */
  readonly progress_timeout: number;
  /** A client connection between two requests. */
  readonly idle_timeout: number;
  /** A pooled upstream connection. */
  readonly pool_idle_timeout: number;
  /** A tunnel or WebSocket without a byte in either direction. */
  readonly tunnel_idle_timeout: number;
  /** A tunnel or WebSocket, whatever it carries; 0: none. */
  readonly tunnel_lifetime: number;
  /** From SIGTERM until what is still open is cut. */
  readonly drain_timeout: number;
  readonly connections: number;
  readonly connections_per_sandbox: number;
  /** Idle upstream connections kept for each pool key. */
  readonly pool_connections: number;
  /** Idle upstream connections of one sandbox, whatever they speak and wherever they lead. */
  readonly pool_connections_per_sandbox: number;
  readonly pool_connections_total: number;
  /** Leaves kept for each sandbox. */
  readonly leaf_cache: number;
  /** Leaves that a sandbox may have minted in a minute. */
  readonly leaf_mints_per_minute: number;
  /** Streams that a client may have open on one HTTP/2 connection. */
  readonly h2_streams: number;
  /** Streams of all HTTP/2 connections of one sandbox that are open at once. */
  readonly h2_streams_per_sandbox: number;
  /** Streams of one connection that its client breaks off, or makes us break off, in a minute. */
  readonly h2_resets_per_minute: number;
  /** PING and SETTINGS frames of one client connection in a minute, beyond one for each piece of a body that moved. */
  readonly h2_control_frames_per_minute: number;
  /** Invalid frames, and streams refused for being too many, after which a client's connection is closed. */
  readonly h2_bad_frames: number;
  /** What a client may send on one stream before it is taken. */
  readonly h2_client_window: number;
  /** What an upstream may send on one stream before it is taken. */
  readonly h2_upstream_window: number;
  /** What the HTTP/2 library holds for one connection: header tables, heads, unsent frames. */
  readonly h2_session_bytes: number;
  /** How long a client's handshake waits to learn what the upstream speaks. */
  readonly alpn_timeout: number;
  /** How long it is remembered. */
  readonly alpn_ttl: number;
  /** A token endpoint, the vault, or a program that prints a secret. */
  readonly secret_timeout: number;
  /** A body that is signed: it is held until it is whole. */
  readonly signed_body_bytes: number;
  /** Bodies of one sandbox that are held at once. */
  readonly signed_bytes_per_sandbox: number;
  /** What is kept of the coded answers of one sandbox that are decoded at once. */
  readonly decoding_bytes_per_sandbox: number;
  /** How long what a program printed is used. */
  readonly secret_ttl: number;
  readonly dns_min_ttl: number;
  readonly dns_max_ttl: number;
  /** Addresses taken from one answer. */
  readonly dns_addresses: number;
  /** Of one sandbox, to the DNS front; what is over it is dropped. */
  readonly dns_queries_per_second: number;
  /** Names of one sandbox that the DNS front gives addresses to at once. */
  readonly dns_names: number;
  /** Bytes of records waiting to be written, per worker; past it they are dropped and counted. */
  readonly record_buffer_bytes: number;
}

export const DEFAULT_LIMITS: Limits = {
  head_bytes: 65_536,
  head_fields: 256,
  target_bytes: 32_768,
  chunk_extension_bytes: 16_384,
  trailer_bytes: 16_384,
  hello_bytes: 65_536,
  interim_responses: 32,
  head_timeout: 10_000,
  handshake_timeout: 10_000,
  connect_timeout: 15_000,
  response_timeout: 600_000,
  progress_timeout: 120_000,
  idle_timeout: 120_000,
  pool_idle_timeout: 30_000,
  tunnel_idle_timeout: 3_600_000,
  tunnel_lifetime: 0,
  drain_timeout: 30_000,
  connections: 16_384,
  connections_per_sandbox: 4_096,
  pool_connections: 64,
  pool_connections_per_sandbox: 1_024,
  pool_connections_total: 4_096,
  leaf_cache: 1_000,
  leaf_mints_per_minute: 600,
  h2_streams: 128,
  h2_streams_per_sandbox: 16_384,
  h2_resets_per_minute: 1_000,
  h2_control_frames_per_minute: 1_200,
  h2_bad_frames: 100,
  h2_client_window: 262_144,
  h2_upstream_window: 1_048_576,
  h2_session_bytes: 16_777_216,
  alpn_timeout: 5_000,
  alpn_ttl: 600_000,
  secret_timeout: 10_000,
  signed_body_bytes: 8_388_608,
  signed_bytes_per_sandbox: 268_435_456,
  decoding_bytes_per_sandbox: 1_073_741_824,
  secret_ttl: 300_000,
  dns_min_ttl: 1_000,
  dns_max_ttl: 300_000,
  dns_addresses: 32,
  dns_queries_per_second: 1_000,
  dns_names: 65_536,
  record_buffer_bytes: 8_388_608,
};
