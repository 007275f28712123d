/** What the bench asks of each contender. Pure. */

export interface Workload {
  readonly name: string;
  /** What one "request" of it is, for the report. */
  readonly about: string;
  readonly host: string;
  readonly path: string;
  readonly connections: number;
  /** Whether each request pays for its own TCP connection, CONNECT and TLS handshake. */
  readonly fresh: boolean;
  /** Whether the contender ends TLS and puts the secret on; the origin answers 403 to a request without it. */
  readonly injected: boolean;
  /** HTTP/2 on both sides, with so many requests under way on each connection at once. */
  readonly streams?: number;
  /** Whom Sallyport is compared with. */
  readonly peer: "squid" | "relay";
  /** The most that Sallyport may cost of what the peer costs, where the project promises one. */
  readonly bound?: number;
}

export const INJECTED_HOST = "telemetry.example.com";
export const TUNNELLED_HOST = "mirror.example.net";

export const WORKLOADS: readonly Workload[] = [
  {
    name: "inspected",
    about: "intercepted and injected, keep-alive, 200 bytes",
    host: INJECTED_HOST,
    path: "/small",
    connections: 64,
    fresh: false,
    injected: true,
    peer: "squid",
    bound: 0.7,
  },
  {
    name: "inspected-64k",
    about: "intercepted and injected, keep-alive, 64 KiB",
    host: INJECTED_HOST,
    path: "/large",
    connections: 64,
    fresh: false,
    injected: true,
    peer: "squid",
  },
  {
    name: "inspected-new",
    about: "intercepted and injected, a connection for each request",
    host: INJECTED_HOST,
    path: "/small",
    connections: 16,
    fresh: true,
    injected: true,
    peer: "squid",
  },
  {
    name: "tunnel",
    about: "tunnelled unseen, keep-alive, 200 bytes",
    host: TUNNELLED_HOST,
    path: "/small",
    connections: 64,
    fresh: false,
    injected: false,
    peer: "squid",
  },
  {
    name: "h2",
    about: "intercepted and injected over HTTP/2, 16 streams on each connection, 200 bytes",
    host: INJECTED_HOST,
    path: "/small",
    connections: 4,
    fresh: false,
    injected: true,
    streams: 16,
    peer: "relay",
    bound: 1.5,
  },
  {
    name: "h2-64k",
    about: "intercepted and injected over HTTP/2, 4 streams on each connection, 64 KiB",
    host: INJECTED_HOST,
    path: "/large",
    connections: 4,
    fresh: false,
    injected: true,
    streams: 4,
    peer: "relay",
  },
];
